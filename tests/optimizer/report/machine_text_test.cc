#include "optimizer/report/machine_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

class MachineText : public testing::TestWithParam<std::string> {};

TEST_P(MachineText, DescribesEveryPreset) {
  const auto machine = LoadMachine(GetParam());
  ASSERT_TRUE(machine.ok()) << machine.status();
  const std::string text = DescribeMachine(*machine);
  EXPECT_THAT(text, HasSubstr(machine->ToString()));
  EXPECT_THAT(text, HasSubstr("all-reduce"));
  for (const Machine::Level& level : machine->levels) EXPECT_THAT(text, HasSubstr(level.name));
  const std::string svg = MachineSvg(*machine);
  EXPECT_THAT(svg, HasSubstr(machine->device_name()));
  // As many elements are opened as closed.
  const auto count = [&](const std::string& what) {
    int found = 0;
    for (size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<text"), count("</text>"));
  EXPECT_EQ(count("<svg"), count("</svg>"));
}

INSTANTIATE_TEST_SUITE_P(Machines, MachineText, testing::ValuesIn(MachinePresets()),
                         [](const auto& info) { return info.param; });

TEST(MachineSvg, ManyUnitsAreElided) {
  const auto machine = LoadMachine("dgx_h100", 2048);
  ASSERT_TRUE(machine.ok()) << machine.status();
  const std::string svg = MachineSvg(*machine);
  EXPECT_THAT(svg, HasSubstr("... x 2045 more"));
  EXPECT_LT(svg.size(), 20000u);
  const auto two = LoadMachine("dgx_h100", 2);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_THAT(MachineSvg(*two), HasSubstr("device 15"));
  EXPECT_THAT(MachineSvg(*two), Not(HasSubstr("more")));
}

TEST(MachineSvg, NamesAreEscaped) {
  auto machine = LoadMachine("laptop_cpu");
  ASSERT_TRUE(machine.ok()) << machine.status();
  machine->levels[0].name = "<&>";
  EXPECT_THAT(MachineSvg(*machine), HasSubstr("&lt;&amp;&gt; 0"));
}

}  // namespace
}  // namespace isomer
