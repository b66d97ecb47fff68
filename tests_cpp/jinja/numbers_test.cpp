// Numbers of the context: they print as they were written, and count as what Python reads.
#include <gtest/gtest.h>

#include "base/strict_json.h"
#include "jinja/chat_template.h"

namespace zinc_rt {
namespace {

std::string shown(const std::string& source, const std::string& x) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed) return "parse: " + parsed.error().message;
  const auto context = read_any_json("{\"x\":" + x + "}");
  if (!context) return "no JSON";
  const auto out = parsed->render(*context);
  return out ? *out : "error: " + out.error().message;
}

TEST(JinjaNumbers, PrintAsTheyWereWritten) {
  for (const std::string x : {"9223372036854775807", "9223372036854775808", "18446744073709551615",
                              "18446744073709551616", "-9223372036854775809", "123456789012345678901234567890", "1.0",
                              "0.10", "0.1000", "1e5", "1E400", "-0", "-0.0", "0.1234567890123456789"}) {
    EXPECT_EQ(shown("{{ x }}", x), x);
    EXPECT_EQ(shown("{{ x | tojson }}", x), x);
    EXPECT_EQ(shown("{{ [x, {'a': x}] | tojson }}", x), "[" + x + ", {\"a\": " + x + "}]");
    EXPECT_EQ(shown("{{ x ~ '' }}|{{ x | string }}|{{ '%s' % x }}|{{ '{}'.format(x) }}", x),
              x + "|" + x + "|" + x + "|" + x);
    EXPECT_EQ(shown("{{ {x: 1} | tojson }}", x), "{\"" + x + "\": 1}");
  }
}

struct Case {
  const char *source, *x, *wanted;
};

TEST(JinjaNumbers, CountAsPythonReadsThem) {
  for (const auto& [source, x, wanted] : {
           Case{"{{ x is number }} {{ x is integer }} {{ x is float }}", "18446744073709551616", "True True False"},
           {"{{ x is number }} {{ x is integer }} {{ x is float }}", "0.10", "True False True"},
           {"{{ x is string }} {{ x is mapping }} {{ x is none }}", "0.10", "False False False"},
           {"{{ x + 1 }}", "1e5", "100001.0"},
           {"{{ x * 2 }} {{ -x }} {{ x | abs }} {{ x | int }} {{ x | float }}", "0.50", "1.0 -0.5 0.5 0 0.5"},
           {"{{ x + 1 }} {{ x == 0 }} {{ x | float }}", "-0", "1 True 0.0"},
           {"{{ x == 100000 }} {{ x > 99999 }} {{ x in [100000] }} {{ {100000: 1}[x] }}", "1e5", "True True True 1"},
           {"{{ x > 9223372036854775807 }} {{ x == x }} {{ x < 0 }} {{ x == 1 }}", "9223372036854775808",
            "True True False False"},
           {"{{ [x, 5, -3] | sort | join(' ') }}", "18446744073709551616", "-3 5 18446744073709551616"},
           {"{{ [x, 5, -3] | sort | join(' ') }}", "-18446744073709551616", "-18446744073709551616 -3 5"},
           {"{{ x | abs }} {{ -x }} {{ +x }} {{ x | int }} {{ x | round }}", "-18446744073709551616",
            "18446744073709551616 18446744073709551616 -18446744073709551616 -18446744073709551616 "
            "-18446744073709551616"},
           {"{{ x + 0.5 }}", "18446744073709551616", "1.8446744073709552e+19"},
           {"{{ 'yes' if x else 'no' }}", "0.00", "no"},
           {"{{ 'yes' if x else 'no' }}", "-0", "no"},
           {"{{ 'yes' if x else 'no' }}", "18446744073709551616", "yes"},
           {"{{ '%.1f' % x }} {{ '%d' % x }}", "2.50", "2.5 2"},
           {"{{ x + 1 }}", "18446744073709551616",
            "error: [chat_template] line 1: 18446744073709551616 does not fit into a signed 64-bit integer"},
       })
    EXPECT_EQ(shown(source, x), wanted) << source << " of " << x;
}

}  // namespace
}  // namespace zinc_rt
