// zrt_pack NAME [IMAGE] OUT: puts the CUDA compiler's output into a .zrt file, or a stand-in if there is no IMAGE. Runs
// during the build.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "kernel/zrt_file.h"
#include "ring/cuda/images.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fputs("usage: zrt_pack NAME [IMAGE] OUT\n", stderr);
    return 2;
  }
  std::string image;
  if (argc == 3) {
    image = std::string(zinc_rt::ring::kStandIn) + argv[1] + '\0';
  } else {
    std::ifstream in(argv[2], std::ios::binary);
    image.assign(std::istreambuf_iterator<char>(in), {});
    if (!in || image.empty()) {
      std::fprintf(stderr, "zrt_pack: cannot read %s\n", argv[2]);
      return 1;
    }
  }
  zinc_rt::kernel::ZrtFile file;
  file.target = zinc_rt::kernel::Target::kSm90;
  file.subgroup_size = 32;
  file.name = argv[1];
  const auto* bytes = reinterpret_cast<const std::byte*>(image.data());
  file.code.assign(bytes, bytes + image.size());
  const auto zrt = write_zrt(file);
  std::ofstream out(argv[argc - 1], std::ios::binary);
  out.write(reinterpret_cast<const char*>(zrt.data()), static_cast<std::streamsize>(zrt.size()));
  return out.flush() ? 0 : 1;
}
