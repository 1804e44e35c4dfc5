#include "executor/checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>
#include <unistd.h>

#include "executor/announced_calls.h"
#include "executor/grad_scaler.h"
#include "executor/learning_rate_schedule.h"

namespace ampscope::executor {
namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

constexpr const char* format_name = "ampscope executor checkpoint";
constexpr std::int64_t format_version = 1;

/// Parameters and buffers by name: the module's, then what only an optimizer knows.
std::vector<std::pair<std::string, at::Tensor>> tensors_of(const TrainingState& state) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  std::set<const void*> seen;
  const auto add = [&](std::string name, const at::Tensor& tensor) {
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second) {
      tensors.emplace_back(std::move(name), tensor);
    }
  };
  if (state.module != nullptr) {
    for (const auto& item : state.module->named_parameters())
      add("parameter " + item.key(), item.value());
    for (const auto& item : state.module->named_buffers())
      add("buffer " + item.key(), item.value());
  }
  for (std::size_t o = 0; o < state.optimizers.size(); ++o) {
    const auto& groups = state.optimizers[o]->param_groups();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t p = 0; p < groups[g].params().size(); ++p) {
        add("parameter " + std::to_string(p) + " of group " + std::to_string(g) + " of optimizer " + std::to_string(o),
            groups[g].params()[p]);
      }
    }
  }
  return tensors;
}

/// What must agree between a file and the objects it is loaded into, in words that a message can show.
std::vector<std::string> structure_of(const TrainingState& state,
                                      const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  std::vector<std::string> lines;
  lines.reserve(tensors.size() + state.optimizers.size());
  for (const auto& [name, tensor] : tensors) {
    lines.push_back(c10::str(name, " ", tensor.scalar_type(), " ", tensor.sizes()));
  }
  for (const auto* optimizer : state.optimizers) {
    std::string line = "optimizer " + class_name(*optimizer) + " with groups of";
    for (const auto& group : optimizer->param_groups())
      line += " " + std::to_string(group.params().size());
    lines.push_back(line + " parameters");
  }
  for (const auto* schedule : state.schedules)
    lines.push_back("schedule " + schedule->name());
  lines.emplace_back(state.scaler != nullptr && state.scaler->is_enabled() ? "gradient scaler" : "no gradient scaler");
  return lines;
}

std::vector<at::Generator> default_generators() {
  std::vector<at::Generator> generators{at::globalContext().defaultGenerator(c10::Device(c10::DeviceType::CPU))};
  if (at::hasCUDA()) {
    const auto count = at::detail::getCUDAHooks().deviceCount();
    for (int i = 0; i < count; ++i) {
      generators.push_back(
          at::globalContext().defaultGenerator(c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(i))));
    }
  }
  return generators;
}

std::string key(const char* kind, std::size_t index) {
  return std::string(kind) + "/" + std::to_string(index);
}

std::string reason(int error) {
  return std::generic_category().message(error);
}

/// A file that takes its name only once it is complete and on the disk.
class NewFile {
 public:
  explicit NewFile(std::string path)
      : path_(std::move(path)), temporary_(path_ + ".tmp." + std::to_string(::getpid())) {
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) error_ = errno;
    check();
  }
  ~NewFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!finished_) ::unlink(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile(NewFile&&) = delete;
  NewFile& operator=(NewFile&&) = delete;

  /// Takes everything, also after an error, which check() reports: an archive that is told of a failed write
  /// tries to finish the file in a destructor, and the exception out of that ends the process.
  std::size_t write(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    std::size_t written = 0;
    while (written < size && error_ == 0) {
      const ssize_t count = ::write(descriptor_, bytes + written, size - written);
      if (count >= 0) {
        written += static_cast<std::size_t>(count);
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    return size;
  }

  void check() const {
    TORCH_CHECK(error_ == 0, "The checkpoint ", path_, " could not be written: ", reason(error_), ".");
  }

  void finish() {
    if (::fsync(descriptor_) != 0) error_ = errno;
    if (::close(std::exchange(descriptor_, -1)) != 0 && error_ == 0) error_ = errno;
    if (error_ == 0 && ::rename(temporary_.c_str(), path_.c_str()) != 0) error_ = errno;
    check();
    finished_ = true;
    // The new name itself must survive a power cut too. Not every file system can do this, and none needs it to be
    // right.
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
      ::fsync(descriptor);
      ::close(descriptor);
    }
  }

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  int error_ = 0;
  bool finished_ = false;
};

c10::IValue read(InputArchive& archive, const std::string& name) {
  c10::IValue value;
  archive.read(name, value);
  return value;
}

std::vector<std::string> read_strings(InputArchive& archive, const std::string& name) {
  std::vector<std::string> strings;
  for (const c10::IValue& value : read(archive, name).toListRef())
    strings.push_back(value.toStringRef());
  return strings;
}

void require_same_structure(const std::vector<std::string>& saved, const std::vector<std::string>& here) {
  for (std::size_t i = 0; i < std::max(saved.size(), here.size()); ++i) {
    const std::string in_file = i < saved.size() ? saved[i] : "nothing";
    const std::string in_run = i < here.size() ? here[i] : "nothing";
    TORCH_CHECK(in_file == in_run, "it belongs to another training: it has ", in_file, " where this one has ", in_run);
  }
}

}  // namespace

void save_checkpoint(const std::string& path, const TrainingState& state, const TrainingProgress& progress) {
  const auto tensors = tensors_of(state);
  OutputArchive archive;
  archive.write("format", c10::IValue(format_name));
  archive.write("version", c10::IValue(format_version));
  c10::List<std::string> structure;
  for (std::string& line : structure_of(state, tensors))
    structure.push_back(std::move(line));
  archive.write("structure", c10::IValue(structure));
  archive.write("progress",
                c10::IValue(c10::List<std::int64_t>(
                    {progress.steps, progress.steps_taken, progress.data_position, progress.data_ended ? 1 : 0})));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    archive.write(key("tensor", i), tensors[i].second, /*is_buffer=*/true);
  }
  for (std::size_t i = 0; i < state.optimizers.size(); ++i) {
    OutputArchive part(archive.compilation_unit());
    state.optimizers[i]->save(part);
    archive.write(key("optimizer", i), part);
  }
  for (std::size_t i = 0; i < state.schedules.size(); ++i) {
    archive.write(key("schedule", i), c10::IValue(c10::List<double>(state.schedules[i]->state())));
  }
  if (state.scaler != nullptr && state.scaler->is_enabled()) {
    OutputArchive part(archive.compilation_unit());
    state.scaler->state_dict()->save(part);
    archive.write("scaler", part);
  }
  auto generators = default_generators();
  archive.write("generators", c10::IValue(static_cast<std::int64_t>(generators.size())));
  for (std::size_t i = 0; i < generators.size(); ++i) {
    const std::scoped_lock lock(generators[i].mutex());
    archive.write(key("generator", i), generators[i].get_state(), /*is_buffer=*/true);
  }

  NewFile file(path);
  archive.save_to([&](const void* data, std::size_t size) { return file.write(data, size); });
  file.check();
  file.finish();
}

struct Checkpoint::Contents {
  TrainingState state;
  TrainingProgress progress;
  std::vector<std::pair<at::Tensor, at::Tensor>> tensors;  // where to, what
  std::vector<InputArchive> optimizers;
  std::vector<std::vector<double>> schedules;
  std::optional<GradScalerState> scaler;
  std::vector<std::pair<at::Generator, at::Tensor>> generators;

  void read_from(InputArchive& archive);
};

void Checkpoint::Contents::read_from(InputArchive& archive) {
  c10::IValue format;
  TORCH_CHECK(archive.try_read("format", format) && format.isString() && format.toStringRef() == format_name,
              "it was not written by save_checkpoint");
  const std::int64_t version = read(archive, "version").toInt();
  TORCH_CHECK(version == format_version, "it has format version ", version, " and this program reads version ",
              format_version);
  const auto here = tensors_of(state);
  require_same_structure(read_strings(archive, "structure"), structure_of(state, here));

  const auto numbers = read(archive, "progress").toIntVector();
  progress = {numbers.at(0), numbers.at(1), numbers.at(2), numbers.at(3) != 0};
  for (std::size_t i = 0; i < here.size(); ++i) {
    at::Tensor saved;
    archive.read(key("tensor", i), saved, /*is_buffer=*/true);
    tensors.emplace_back(here[i].second, saved);
  }
  for (std::size_t i = 0; i < state.optimizers.size(); ++i) {
    archive.read(key("optimizer", i), optimizers.emplace_back());
  }
  for (std::size_t i = 0; i < state.schedules.size(); ++i) {
    schedules.push_back(read(archive, key("schedule", i)).toDoubleVector());
  }
  if (state.scaler != nullptr && state.scaler->is_enabled()) {
    InputArchive part;
    archive.read("scaler", part);
    scaler.emplace().load(part);
  }
  const auto all = default_generators();
  const std::int64_t count = read(archive, "generators").toInt();
  TORCH_CHECK(count == static_cast<std::int64_t>(all.size()), "it was saved with ", count - 1,
              " CUDA devices and there are ", all.size() - 1, ", so the random generators cannot be restored");
  for (std::size_t i = 0; i < all.size(); ++i) {
    at::Tensor saved;
    archive.read(key("generator", i), saved, /*is_buffer=*/true);
    generators.emplace_back(all[i], saved.to(at::kCPU));
  }
}

Checkpoint::Checkpoint(const std::string& path, TrainingState state) : contents_(std::make_unique<Contents>()) {
  contents_->state = std::move(state);
  TORCH_CHECK(::access(path.c_str(), R_OK) == 0, "The checkpoint ", path, " cannot be read: ", reason(errno), ".");
  InputArchive archive;
  try {
    archive.load_from(path);
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, "The checkpoint ", path, " cannot be read: ", error.what_without_backtrace());
  }
  try {
    contents_->read_from(archive);
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, "The checkpoint ", path, " cannot be used: ", error.what_without_backtrace());
  }
}

Checkpoint::~Checkpoint() = default;

const TrainingProgress& Checkpoint::progress() const noexcept {
  return contents_->progress;
}

void Checkpoint::restore() {
  for (std::size_t i = 0; i < contents_->optimizers.size(); ++i) {
    torch::optim::Optimizer& optimizer = *contents_->state.optimizers[i];
    optimizer.state().clear();  // load() only adds: state of a parameter that had none when saved would stay
    optimizer.load(contents_->optimizers[i]);
  }
  {
    const at::NoGradGuard no_grad;
    for (auto& [here, saved] : contents_->tensors)
      here.copy_(saved);
  }
  for (std::size_t i = 0; i < contents_->schedules.size(); ++i) {
    contents_->state.schedules[i]->set_state(contents_->schedules[i]);
  }
  if (contents_->scaler) {
    contents_->state.scaler->load_state_dict(contents_->scaler);
    contents_->state.scaler->abandon_iteration();
  }
  for (auto& [generator, saved] : contents_->generators) {
    const std::scoped_lock lock(generator.mutex());
    generator.set_state(saved);
  }
}

}  // namespace ampscope::executor
