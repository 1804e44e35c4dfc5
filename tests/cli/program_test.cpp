#include "cli/process/program.h"

#include <filesystem>
#include <string>

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/process.h"

namespace ampscope::cli {
namespace {

using ::testing::HasSubstr;

class Program : public ::testing::Test {
 protected:
  std::string make(const std::string& name, const std::string& content) const {
    folder.write(name, content);
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
    return folder / name;
  }
  /// An ELF file with one program header of this type.
  static std::string elf(Elf64_Word type) {
    Elf64_Ehdr header{};
    std::copy_n(ELFMAG, SELFMAG, header.e_ident);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    Elf64_Phdr segment{};
    segment.p_type = type;
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) +
           std::string(reinterpret_cast<const char*>(&segment), sizeof segment);
  }
  testing::Folder folder;
};

TEST_F(Program, IsFoundAsAShellFindsIt) {
  EXPECT_TRUE(find_program("sh").has_value());
  EXPECT_EQ(find_program(make("tool", "#!/bin/sh\n")), folder / "tool");
  EXPECT_EQ(find_program("no-such-program-at-all"), std::nullopt);
  EXPECT_EQ(find_program(folder.path()), std::nullopt);
  EXPECT_EQ(find_program(""), std::nullopt);
}

TEST_F(Program, ThatIsStaticallyLinkedCannotBeWatched) {
  EXPECT_THAT(why_not_observable({make("static", elf(PT_LOAD))}), HasSubstr("statically linked"));
  EXPECT_EQ(why_not_observable({make("dynamic", elf(PT_INTERP))}), "");
  EXPECT_EQ(why_not_observable({make("script", "#!/bin/sh\n")}), "");
  EXPECT_EQ(why_not_observable({make("short",
                                     "\x7f"
                                     "ELF")}),
            "");
}

TEST_F(Program, PythonThatIsIsolatedCannotBeWatched) {
  const std::string python = make("python3.11", "#!/bin/sh\n");
  EXPECT_THAT(why_not_observable({python, "-I", "x.py"}), HasSubstr("-I"));
  EXPECT_THAT(why_not_observable({python, "-uE", "x.py"}), HasSubstr("-uE"));
  EXPECT_THAT(why_not_observable({python, "-W", "ignore", "-S", "x.py"}), HasSubstr("-S"));
  EXPECT_EQ(why_not_observable({python, "-u", "x.py", "-I"}), "");  // the program's own option
  EXPECT_EQ(why_not_observable({python, "-m", "pkg", "-S"}), "");
  EXPECT_EQ(why_not_observable({python, "-WError", "x.py"}), "");  // -W takes the rest
  EXPECT_EQ(why_not_observable({python, "-c", "import sys", "-E"}), "");
  EXPECT_EQ(why_not_observable({}), "");
}

}  // namespace
}  // namespace ampscope::cli
