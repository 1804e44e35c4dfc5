// A C++ program that is linked to libtorch.
extern "C" int use_model();

int main() {
  return use_model();
}
