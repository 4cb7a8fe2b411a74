// What a plan gains against another.
#ifndef ISOMER_OPTIMIZER_REPORT_AGAINST_TEXT_H_
#define ISOMER_OPTIMIZER_REPORT_AGAINST_TEXT_H_

#include <string>

namespace isomer {

// "(the plan saves 22.7 %)", "(the plan takes as long)" or "(the plan takes 60.1 % longer)": of a
// plan's step against another's, in microseconds.
std::string AgainstText(double plan_us, double other_us);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_AGAINST_TEXT_H_
