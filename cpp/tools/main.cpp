#include "tools/cli.h"

int main(int argc, char** argv) {
  return zinc_rt::tools::cli_main(argc, argv);
}
