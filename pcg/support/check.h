// CHECK for what only a bug can cause; anything that input can cause is an absl::Status.
#ifndef ISOMER_PCG_SUPPORT_CHECK_H_
#define ISOMER_PCG_SUPPORT_CHECK_H_

#include <cstdio>
#include <cstdlib>

// Aborts with file, line and the condition when it does not hold; in every build type.
#define ISOMER_CHECK(condition)                                                               \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      std::fprintf(stderr, "%s:%d: bug: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                           \
    }                                                                                         \
  } while (false)

#endif  // ISOMER_PCG_SUPPORT_CHECK_H_
