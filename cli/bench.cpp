// interlock bench: how fast is this store, from here?
#include "command.hpp"

namespace cli {

int bench(const Arguments& /*arguments*/) { throw Failure(kSoftware, "not yet there"); }

}  // namespace cli
