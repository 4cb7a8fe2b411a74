// What the declarations of the example calls compute, recorded: known_answers.txt beside this file.
//
// The declarations are what everything else is derived from, so nothing derived can tell that one
// is wrong. They are held to answers known from elsewhere: those written by hand in
// tests/pcg/operators, other frameworks' models (tests/models), and the kernels of vendors'
// libraries (tests/runtime). What they computed when all of these agreed is recorded here, so that
// any later change of a meaning is seen, by value.
#ifndef ISOMER_VERIFIER_MUTATION_KNOWN_ANSWERS_H_
#define ISOMER_VERIFIER_MUTATION_KNOWN_ANSWERS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/examples.h"

namespace isomer {

// A line: the digests of the outputs over the prime field and, rounded, over the reals; the dims
// that may be partitioned; the operands that the call is linear in, each by itself.
// Errors: the declaration cannot be evaluated.
absl::StatusOr<std::string> AnswerOf(const ExampleCall& call, const Declaration& declaration);

// Numbers that the call takes, from `seed`: indices are valid, divisors are not near 0. Even seeds
// draw small integers, many of them equal.
template <typename T>
std::vector<Array<T>> DrawOperands(const ExampleCall& call, uint64_t seed);

// By the name of the example.
absl::StatusOr<std::map<std::string, std::string>> LoadKnownAnswers();
// The text of known_answers.txt for the declarations as they are.
absl::StatusOr<std::string> KnownAnswersText();

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_KNOWN_ANSWERS_H_
