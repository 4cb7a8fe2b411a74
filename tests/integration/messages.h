// The golden file of what programs say when the answer is no or the input is bad.
#ifndef ISOMER_TESTS_INTEGRATION_MESSAGES_H_
#define ISOMER_TESTS_INTEGRATION_MESSAGES_H_

#include <string>

namespace isomer {

// Every test whose program ends with 1 or 2 holds what was said against the golden file
// (tests/integration/messages.txt), whose lines are to be read as a whole: each says what is wrong,
// where, and what to do. A line that is not there fails the test; scripts/update_messages.sh writes
// the file anew. Folders of the test and of the source are
// $TMP and $SOURCE, numbers of four digits and more ####.
void ExpectGoldenMessages(const std::string& program, const std::string& err);

}  // namespace isomer

#endif  // ISOMER_TESTS_INTEGRATION_MESSAGES_H_
