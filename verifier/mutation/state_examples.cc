#include "verifier/mutation/state_examples.h"

namespace isomer {

const std::vector<ExampleGraph>& StateExamples() {
  static const auto* const examples = new std::vector<ExampleGraph>{
      // Each step replaces a row of two caches, where they lie.
      {"RowsOfCaches",
       "",
       R"(
%0 = input "keys" : f32[2,4,8,2]
%1 = input "values" : f32[2,4,8,2]
%2 = input "row" : i64[2,4,1,2]
%3 = input "x" : f32[2,4,1,2]
%4 = partition(%0) {axis=1, degree=2} : f32[2,4:2,8,2]
%5 = partition(%1) {axis=1, degree=2} : f32[2,4:2,8,2]
%6 = partition(%2) {axis=1, degree=2} : i64[2,4:2,1,2]
%7 = partition(%3) {axis=1, degree=2} : f32[2,4:2,1,2]
%8 = relu(%7) : f32[2,4:2,1,2]
%9 = scatter_elements(%4, %6, %7) {axis=2} : f32[2,4:2,8,2]
%10 = scatter_elements(%5, %6, %8) {axis=2} : f32[2,4:2,8,2]
%11 = attention(%7, %9, %10) {scale=1} : f32[2,4:2,1,2]
%12 = combine(%9) {axis=1, degree=2} : f32[2,4,8,2]
%13 = combine(%10) {axis=1, degree=2} : f32[2,4,8,2]
%14 = combine(%11) {axis=1, degree=2} : f32[2,4,1,2]
output "y" = %14
output "keys" = %12
output "values" = %13
)",
       2,
       {}},
      // The oldest row goes, and a new one comes; the attention sees the cache before.
      {"GrowingCache",
       "",
       R"(
%0 = input "keys" : f32[1,4,8,2]
%1 = input "x" : f32[1,4,1,2]
%2 = partition(%0) {axis=1, degree=2} : f32[1,4:2,8,2]
%3 = partition(%1) {axis=1, degree=2} : f32[1,4:2,1,2]
%4 = concat(%2, %3) {axis=2} : f32[1,4:2,9,2]
%5 = split(%4) {axis=2, sizes=[1,8]} : f32[1,4:2,1,2], f32[1,4:2,8,2]
%6 = combine(%5.1) {axis=1, degree=2} : f32[1,4,8,2]
%7 = attention(%3, %2, %2) {scale=1} : f32[1,4:2,1,2]
output "y" = %7
output "keys" = %6
)",
       2,
       {}},
      // States that are made in another sharding than they are read in, and as partial sums; one
      // that is the other as it was.
      {"MovedStates",
       "",
       R"(
%0 = input "a" : f32[4,4]
%1 = input "b" : f32[4,4]
%2 = weight "w" : f32[4,4]
%3 = partition(%0) {axis=1, degree=2} : f32[4,4:2]
%4 = partition(%2) {axis=0, degree=2} : f32[4:2,4]
%5 = matmul(%3, %4) : f32[4,4] p2
%6 = reduce(%5) {degree=2} : f32[4,4]
%7 = partition(%1) {axis=0, degree=2} : f32[4:2,4]
%8 = relu(%7) : f32[4:2,4]
output "y" = %8
output "a" = %6
output "b" = %0
)",
       2,
       {}},
  };
  return *examples;
}

ScheduleOptions StateOptions(const ExampleGraph& example) {
  ScheduleOptions options;
  options.training = false;
  options.num_devices = example.num_devices;
  return options;
}

}  // namespace isomer
