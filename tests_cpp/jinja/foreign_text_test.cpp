// Which bytes of a rendered text count as the template's own, and which came from the context.
#include <gtest/gtest.h>
#include <regex.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "jinja/chat_template.h"
#include "tests_cpp/base/fixtures.h"

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;

// The parts of a text that match an expression of POSIX: the whole of each, and its first group.
struct Match {
  std::size_t at, length;
  std::string group;
};
std::vector<Match> matches_of(const std::string& expression, const std::string& text) {
  regex_t compiled;
  EXPECT_EQ(regcomp(&compiled, expression.c_str(), REG_EXTENDED), 0) << expression;
  std::vector<Match> found;
  std::array<regmatch_t, 2> part;
  for (std::size_t from = 0; regexec(&compiled, text.c_str() + from, 2, part.data(), from > 0 ? REG_NOTBOL : 0) == 0;) {
    const auto size = [](const regmatch_t& one) { return static_cast<std::size_t>(one.rm_eo - one.rm_so); };
    const auto at = from + static_cast<std::size_t>(part[0].rm_so);
    const bool has_group = part[1].rm_so >= 0;
    found.push_back({at, size(part[0]),
                     has_group ? text.substr(from + static_cast<std::size_t>(part[1].rm_so), size(part[1])) : ""});
    from = at + size(part[0]);
  }
  regfree(&compiled);
  return found;
}

const Json& foreign_context() {
  static const Json context = Json::parse(R"({
    "s": "ab <c>", "t": "  x-y\n\n z ", "up": "QR", "u": "é<", "tab": "a\tb", "num": "-7", "tags": "<i>a</i>  b",
    "words": ["p", "q"], "d": {"k": "v", "m": null}, "people": [{"n": "B"}, {"n": "a"}], "i": 5, "x": 2.5,
    "long": "a very long text that has many words in it and does not fit into a line of eighty characters at all",
    "pf": "%s!", "ff": "{}!", "fill": "*", "html": "<&>", "role": "user", "deep": {"role": "tool<"},
    "messages": [{"role": "user", "content": "Hi"}, {"role": "robot", "content": "<|im_end|>"}]
  })");
  return context;
}

// The output with what is foreign between « and ».
std::string shown(const std::string& source, const Json& context = foreign_context(),
                  const Json& own = Json::object()) {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed) return "error: " + parsed.error().message;
  constexpr std::string_view kWords[] = {"user", "assistant"};
  auto out = parsed->render_marked(context, own, {"role", kWords});
  if (!out) return "error: " + out.error().message;
  std::string text;
  std::size_t last = 0;
  for (const TextSpan& mark : out->marks()) {
    EXPECT_LT(mark.begin, mark.end);
    EXPECT_TRUE(mark.begin > last || last == 0) << source;
    EXPECT_LE(mark.end, out->size());
    last = mark.end;
  }
  out->view().for_each_run([&](std::string_view run, bool is_foreign) {
    text += is_foreign ? "«" + std::string(run) + "»" : std::string(run);
  });
  // What is marked never decides what is written.
  EXPECT_EQ(out->text(), parsed
                             ->render([&] {
                               Json all = context;
                               all.update(own);
                               return all;
                             }())
                             .value_or("error"))
      << source;
  return text;
}

struct Row {
  const char* source;
  const char* expected;
};

// At least one for each filter and each method that gives text.
constexpr Row kRows[] = {
    // Expressions and statements.
    {"<{{ s }}>", "<«ab <c>»>"},
    {"{{ '<' ~ s ~ i ~ '>' }}", "<«ab <c>»5>"},
    {"{{ '<' + s + '>' }}", "<«ab <c>»>"},
    {"{{ ('<' + s + '>') * 2 }}", "<«ab <c>»><«ab <c>»>"},
    {"{{ s * 2 }}", "«ab <c>ab <c>»"},
    {"{{ ('<' + s + '>')[1:-1] }}", "«ab <c>»"},
    {"{{ ('<' + s + '>')[3:] }}", "« <c>»>"},
    {"{{ ('<' + s + '>')[::-1] }}", ">«>c< ba»<"},
    {"{{ ('<' + s)[0] }}{{ ('<' + s)[1] }}", "<«a»"},
    {"{% for c in '<' + u + '>' %}{{ c }}{% endfor %}", "<«é<»>"},
    {"{% set v %}<{{ s }}>{% endset %}{{ v }}", "<«ab <c>»>"},
    {"{% set v | upper %}<{{ s }}>{% endset %}{{ v }}", "<«AB <C>»>"},
    {"{% filter upper %}x{{ s }}{% endfilter %}", "X«AB <C>»"},
    {"{% macro m(a, b='d') %}[{{ a }}{{ b }}]{% endmacro %}{{ m(s) }}{{ m('e', s) }}", "[«ab <c>»d][e«ab <c>»]"},
    {"{% macro m() %}{{ kwargs }}{% endmacro %}{{ m(**{'a': s}) }}{{ m(**d) }}",
     "{'a': '«ab <c>»'}{'«k»': '«v»', '«m»': None}"},
    {"{% macro m() %}({{ caller(s) }}){% endmacro %}{% call(a) m() %}<{{ a }}>{% endcall %}", "(<«ab <c>»>)"},
    {"{% set ns = namespace(a='<') %}{% set ns.a = ns.a + s %}{{ ns.a }}", "<«ab <c>»"},
    {"{{ dict(a=s) }}{{ dict(**d) }}{{ dict(d) }}{{ dict([('z', s)]) }}",
     "{'a': '«ab <c>»'}{'«k»': '«v»', '«m»': None}{'«k»': '«v»', '«m»': None}{'z': '«ab <c>»'}"},
    {"{{ [s, 'o', i, none] }}{{ (s,) }}{{ d }}{{ d.items() }}{{ d.keys() }}{{ d.values() }}",
     "['«ab <c>»', 'o', 5, None]('«ab <c>»',){'«k»': '«v»', '«m»': None}dict_items([('«k»', '«v»'), ('«m»', None)])"
     "dict_keys(['«k»', '«m»'])dict_values(['«v»', None])"},
    {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "«k»=«v»;«m»=None;"},
    {"{{ s if s else '-' }}{{ '' or s }}{{ s and 'w' }}", "«ab <c>ab <c>»w"},
    {"{{ cycler(s, 'o').next() }}{% set j = joiner(s) %}{{ j() }}{{ j() }}", "«ab <c>ab <c>»"},
    {"{% for m in people recursive %}{{ m.n }}.{% endfor %}", "«B».«a»."},
    {"{{ strftime_now('y') }}{{ strftime_now(up) }}", "y«QR»"},
    {"{{ i }}{{ x }}{{ s == 'ab <c>' }}{{ 'b' in s }}{{ s is string }}{{ s < 'b' }}", "52.5TrueTrueTrueTrue"},
    {"{{ {'ab <c>': 'hit'}[s] }}{{ d['k'] }}{{ d.k }}{{ d.get('k') }}{{ d.get('no', 'w') }}", "hit«vvv»w"},
    {"{{ words.index('q') }}{{ words.count('p') }}{{ words.copy() }}{{ d.copy() }}{{ words + ['r'] }}",
     "11['«p»', '«q»']{'«k»': '«v»', '«m»': None}['«p»', '«q»', 'r']"},
    {"{{ pf % 'A' }}{{ '<%s>' % s }}{{ '%5s|%-4s|%d%%' % (up, up, i) }}{{ '%r' % s }}{{ '%(k)s' % d }}{{ '%c' % fill "
     "}}{{ '%c' % 60 }}",
     "«A!»<«ab <c>»>   «QR»|«QR»  |5%'«ab <c>»'«v*<»"},
    // Roles are the template's words, and nothing else is.
    {"<|{{ role }}|>{{ deep.role }}{{ messages[0].role }}{{ messages[1].role }}", "<|user|>«tool<»user«robot»"},
    // Filters.
    {"{{ ('x' + s) | capitalize }}{{ up | capitalize }}", "X«ab <c>Qr»"},
    {"{{ s | center(10) }}|{{ s.center(10, fill) }}", "  «ab <c>»  |«**ab <c>**»"},
    {"{{ none_ | d(s) }}{{ none_ | default('w') }}{{ d | dictsort }}", "«ab <c>»w[('«k»', '«v»'), ('«m»', None)]"},
    {"{{ ('<' + html) | e }}{{ html | escape }}{{ ('<' + html) | forceescape }}",
     "&lt;«&lt;&amp;&gt;&lt;&amp;&gt;»&lt;«&lt;&amp;&gt;»"},
    {"{{ words | first }}{{ words | last }}{{ s | first }}{{ s | last }}", "«pqa>»"},
    {"{{ '<%s>' | format(s) }}{{ '%(a)s' | format(a=s) }}", "<«ab <c>»>«ab <c>»"},
    {"{% for g in people | groupby('n') %}{{ g.grouper }}{{ g.list }}{% endfor %}",
     "«a»[{'«n»': '«a»'}]«B»[{'«n»': '«B»'}]"},
    {"{{ t | indent(2) }}|{{ ('o\\n' + s) | indent(up, true) }}", "«  x-y»\n\n  « z »|«QR»o\n«QRab <c>»"},
    {"{{ d | items | list }}{{ words | list }}{{ s | list | length }}",
     "[('«k»', '«v»'), ('«m»', None)]['«p»', '«q»']6"},
    {"{{ words | join }}{{ words | join(', ') }}{{ ['o', s] | join(fill) }}{{ people | join('+', attribute='n') }}",
     "«pqp», «q»o«*ab <c>B»+«a»"},
    {"{{ ('X' + up) | lower }}{{ ('x' + s) | upper }}{{ ('x' + u) | upper }}", "x«qr»X«AB <C>XÉ<»"},
    {"{{ words | map('upper') | list }}{{ people | map(attribute='n') | list }}", "['«P»', '«Q»']['«B»', '«a»']"},
    {"{{ words | max }}{{ words | min }}{{ words | reject('eq', 'p') | list }}{{ words | select('eq', 'p') | list }}",
     "«qp»['«q»']['«p»']"},
    {"{{ people | selectattr('n', 'eq', 'B') | list }}{{ people | rejectattr('n', 'eq', 'B') | list }}",
     "[{'«n»': '«B»'}][{'«n»': '«a»'}]"},
    {"{{ s | pprint }}{{ 'own' | pprint }}{{ long | pprint }}",
     "«'ab <c>'»'own'«('a very long text that has many words in it and does not fit into a line of '\n 'eighty "
     "characters "
     "at all')»"},
    {"{{ ('<b>' + s) | replace('b', '.') }}{{ 'a-b' | replace('-', s) }}{{ s | replace(' ', '') }}{{ 'ab' | "
     "replace('', fill) }}",
     "<.>«a».« <c>»a«ab <c>»b«ab<c>*»a«*»b«*»"},
    {"{{ ('<' + s) | reverse }}{{ words | reverse | list }}", "«>c< ba»<['«q»', '«p»']"},
    {"{{ ('<' + s) | safe }}{{ words | slice(2) | list }}{{ words | batch(1) | list }}",
     "<«ab <c>»[['«p»'], ['«q»']][['«p»'], ['«q»']]"},
    {"{{ words | sort(reverse=true) }}{{ people | sort(attribute='n') }}{{ words | unique | list }}",
     "['«q»', '«p»'][{'«n»': '«a»'}, {'«n»': '«B»'}]['«p»', '«q»']"},
    {"{{ s | string }}{{ words | string }}{{ [words, ['o']] | sum(start=[]) }}",
     "«ab <c>»['«p»', '«q»']['«p»', '«q»', 'o']"},
    {"{{ tags | striptags }}{{ '<b>o</b>' | striptags }}", "«a b»o"},
    {"{{ ('x-' + s) | title }}{{ ('x ' + u) | title }}", "X-«Ab <C>»X «É<»"},
    {"{{ s | tojson }}{{ d | tojson }}{{ ['o', html] | tojson(indent=1) }}{{ u | tojson(ensure_ascii=true) }}"
     "{{ [1, 2] | tojson(separators=(fill, ':')) }}{{ tab | tojson }}",
     "\"«ab <c>»\"{\"«k»\": \"«v»\", \"«m»\": null}[\n \"o\",\n \"«<&>»\"\n]\"«\\u00e9<»\"«[1*2]»\"«a\\tb»\""},
    {"[{{ t | trim }}]{{ ('<' + s + '>') | trim('<>') }}{{ (' ' + t) | trim }}", "[«x-y\n\n z»]«ab <cx-y\n\n z»"},
    {"{{ long | truncate(12) }}{{ ('<' + long) | truncate(9, true, s, 0) }}", "«a very»...<«a ab <c>»"},
    {"{{ s | urlencode }}{{ d | urlencode }}{{ 'a b' | urlencode }}", "«ab%20%3Cc%3Ek=v&m=None»a%20b"},
    {"{{ ('o ' + s) | wordwrap(4) }}{{ 'a b' | wordwrap(1, wrapstring=fill) }}", "o «ab»\n«<c>»a«*»b"},
    {"{{ d | xmlattr }}|{{ {'a': html} | xmlattr(false) }}", " «k»=\"«v»\"|a=\"«&lt;&amp;&gt;»\""},
    {"{{ d | attr('k') | d('none') }}{{ people[0] | map('upper') | list }}", "none['«N»']"},
    // Methods.
    {"{{ ('X' + up).lower() }}{{ ('X' + up).casefold() }}{{ ('x' + s).upper() }}{{ ('x' + s).title() }}"
     "{{ ('x' + s).swapcase() }}{{ ('x' + s).capitalize() }}",
     "x«qr»x«qr»X«AB <C>»X«ab <C>»X«AB <C>»X«ab <c>»"},
    {"{{ ('<' + s + '>').strip('<>') }}{{ t.lstrip() }}{{ t.rstrip() }}{{ ('<' + s).lstrip('<') }}",
     "«ab <cx-y\n\n z   x-y\n\n zab <c>»"},
    {"{{ ('a,' + s + ',b').split(',') }}{{ s.split() }}{{ ('a ' + s).rsplit(' ', 1) }}{{ ('a\\n' + t).splitlines() }}",
     "['a', '«ab <c>»', 'b']['«ab»', '«<c>»']['a «ab»', '«<c>»']['a', '«  x-y»', '', '« z »']"},
    {"{{ ('a=' + s).partition('=') }}{{ ('=' + s).rpartition('=') }}{{ s.partition(' ') }}",
     "('a', '=', '«ab <c>»')('', '=', '«ab <c>»')('«ab»', '« »', '«<c>»')"},
    {"{{ ', '.join(words) }}{{ fill.join(['o', 'p']) }}", "«p», «q»o«*»p"},
    {"{{ ('<b>' + s).replace('b', '.') }}{{ 'a-b'.replace('-', s) }}{{ ('<' | safe + html).replace('<', html) }}",
     "<.>«a».« <c>»a«ab <c>»b«&lt;&amp;&gt;&lt;&amp;&gt;»"},
    {"{{ ('<' + s).removeprefix('<') }}{{ ('<' + s).removesuffix('>') }}{{ s.removeprefix('ab') }}",
     "«ab <c>»<«ab <c <c>»"},
    {"{{ up.ljust(4) }}|{{ up.rjust(4, fill) }}|{{ num.zfill(5) }}{{ tab.expandtabs(4) }}",
     "«QR»  |«**QR»|«-»000«7a»   «b»"},
    {"{{ '<{}>{}'.format(s, i) }}{{ ff.format('A') }}{{ '{:>{}}'.format(up, 4) }}{{ '{:{}<4}'.format('o', fill) }}"
     "{{ '{0!r}{a}'.format(s, a=up) }}{{ '{a}'.format_map({'a': s}) }}{{ '{d[k]}'.format(d=d) }}",
     "<«ab <c>»>5«A!»  «QRo***»'«ab <c>»'«QRab <c>v»"},
};

TEST(ForeignText, EachOperationKeepsItApart) {
  for (const Row& row : kRows) EXPECT_EQ(shown(row.source), row.expected) << row.source;
}

// A filter or method that is added wants a row above, or a place among those that give no text.
TEST(ForeignText, EveryFilterAndMethodHasARow) {
  const std::set<std::string> no_text = {
      "abs",     "count",      "filesizeformat", "float",   "int",     "length",  "round",        "wordcount",
      "random",  "urlize",     "bit_length",     "find",    "index",   "rfind",   "rindex",       "endswith",
      "encode",  "startswith", "is_integer",     "isalnum", "isalpha", "isascii", "isdecimal",    "isdigit",
      "islower", "isnumeric",  "isprintable",    "isspace", "isupper", "istitle", "isidentifier", "reset"};
  std::string all;
  for (const Row& row : kRows) all += row.source;
  int n = 0;
  for (const char* name : {"filters", "methods", "methods_split", "methods_str"}) {
    std::ifstream file(ZRT_SOURCE_DIR "/cpp/jinja/" + std::string(name) + ".cpp");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (const Match& entry : matches_of(R"re(\{"([A-Za-z0-9_]+)", [A-Za-z0-9_]+)re", text)) {
      const std::string& one = entry.group;
      ++n;
      if (no_text.contains(one)) continue;
      const std::string sign = std::string(name) == "filters" ? "[|] " : "[.]";
      EXPECT_FALSE(matches_of("(" + sign + "|[|] |filter )" + one + "([^A-Za-z0-9_]|$)", all).empty())
          << name << ": " << one;
    }
  }
  EXPECT_GT(n, 90);
}

TEST(ForeignText, WhatTheCallerOwnsIsTheTemplates) {
  const Json own{{"bos_token", "<s>"}, {"list", Json::array({"a"})}};
  EXPECT_EQ(shown("{{ bos_token }}{{ list }}{{ s }}", foreign_context(), own), "<s>['a']«ab <c>»");
  EXPECT_EQ(shown("{{ bos_token }}", Json{{"bos_token", "<s>"}}), "«<s>»");
  // A word counts under its key alone, and only as a whole.
  EXPECT_EQ(shown("{{ name }}{{ m.role }}{{ m }}", Json{{"name", "user"}, {"m", {{"role", "users"}}}}),
            "«userusers»{'«role»': '«users»'}");
}

// Whole templates, those of real models among them: what they write as tokens is theirs from end to end, also where a
// role stands in its middle.
TEST(ForeignText, TemplatesOwnTheirTokens) {
  std::ifstream file(ZRT_SOURCE_DIR "/tests_cpp/jinja/data/template_cases.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const Json head = Json::parse(line);
  const std::string token = R"re(<\|[A-Za-z_"]+\|?>|<[a-z_]+\|>|</?s>|<bos>|\[/?[A-Z_]+\])re";
  constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool", "ipython"};
  const auto text_of_file = [](const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  int n = 0;
  while (std::getline(file, line)) {
    const Json one = Json::parse(line);
    const auto name = one.at("template").get<std::string>();
    const std::string own = ZRT_SOURCE_DIR "/tests_cpp/jinja/data/templates/" + name;
    if (!one.at("own").get<bool>() && !has_shared_fixtures()) continue;
    const auto parsed = ChatTemplate::parse(
        text_of_file(one.at("own").get<bool>() ? own : (shared_fixtures() / "templates" / name).string()));
    ASSERT_TRUE(parsed) << name;
    for (const auto& [conversation, expected] : one.at("outputs").items()) {
      const auto out =
          parsed->render_marked(head.at("conversations").at(conversation), head.at("base"), {"role", kRoles});
      if (!out) continue;
      const std::string& text = out->text();
      for (const Match& match : matches_of(token, text)) {
        ++n;
        EXPECT_FALSE(out->view().sub(match.at, match.length).has_marks())
            << name << ", " << conversation << ": " << text.substr(match.at, match.length);
      }
    }
  }
  EXPECT_GT(n, has_shared_fixtures() ? 400 : 0);
}

// Cut and put together at random, each byte keeps its side: digits are the template's, letters the context's.
TEST(ForeignText, BytesKeepTheirSideThroughChains) {
  std::mt19937 random(7);
  const auto pick = [&](auto... options) {
    const char* all[] = {options...};
    return std::string(all[random() % sizeof...(options)]);
  };
  int n_rendered = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string expr = "('12' + a)";
    for (int k = 0; k < 6; ++k) {
      expr = "(" + expr +
             pick(" + '345'", " + b", " ~ 6", " * 2", ")[1:] + ('7'", ")[:-1] + ('8'", ")[::-1] + (a", ".upper()",
                  " | lower", ".strip('1a')", " | replace('2', b)", " | replace('a', '99')", ".split('3') | join('0')",
                  " | list | join", " | trim", ".partition('b') | join", " | title", " | center(20)", ".rjust(9, '4')",
                  " | indent(1, true)", " | batch(2) | map('join') | join(b)", " | truncate(30)", ".format(a) | string",
                  " | safe", " | e | string", ".splitlines() | join('5')", " | wordwrap(5) | string") +
             ")";
    }
    auto parsed = ChatTemplate::parse("{{ " + expr + " }}");
    ASSERT_TRUE(parsed) << expr;
    auto out = parsed->render_marked(Json{{"a", "xay b"}, {"b", "éz"}}, Json::object(), {});
    if (!out) continue;  // as a format with a character that means something
    ++n_rendered;
    out->view().for_each_run([&](std::string_view run, bool is_foreign) {
      for (const char c : run) {
        const bool is_letter = std::isalpha(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80;
        EXPECT_FALSE(is_letter && !is_foreign) << expr << ": " << out->text();
      }
    });
  }
  EXPECT_GT(n_rendered, 2000);
}

}  // namespace
}  // namespace zinc_rt
