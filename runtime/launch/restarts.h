#ifndef ISOMER_RUNTIME_LAUNCH_RESTARTS_H_
#define ISOMER_RUNTIME_LAUNCH_RESTARTS_H_

#include <cstdint>
#include <string>

namespace isomer {

// Whether a job that failed is worth another start from its newest checkpoint.
class Restarts {
 public:
  // Starts without a new checkpoint between them, after which the next would end alike.
  static constexpr int kMostInVain = 2;

  explicit Restarts(int64_t most) : most_(most) {}

  // The job failed with this newest checkpoint (0: none). Empty: it is to be started again; else
  // why not: "it failed 3 times behind step 25 without coming further".
  std::string Failed(int64_t newest_step);
  int64_t so_far() const { return so_far_; }
  int64_t most() const { return most_; }

 private:
  const int64_t most_;
  int64_t so_far_ = 0;
  int64_t newest_ = -1;
  int in_vain_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_LAUNCH_RESTARTS_H_
