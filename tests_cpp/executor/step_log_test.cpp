// What a step log has of each step, and how it is read and played again.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "executor/step_log_text.h"
#include "step_log_files.h"

namespace zinc_rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kLogModel = "tiny_llama-f32";

// Two slots: a prompt, then steps of one token with every kind of row. Returns the picks of all steps.
std::vector<std::int32_t> run_every_kind(Executor& executor) {
  const std::vector<std::int32_t> texts[] = {prompt(20, 3), prompt(7, 4)};
  const std::vector<TokenBias> bias = {{5, 1.5f}, {9, -2.0f}};
  const std::vector<std::int32_t> banned = {1, 2, 3};
  const std::vector<std::uint32_t> mask(executor.config().vocab_size / 32, 0x0F0F00F0);
  std::vector<std::int32_t> text[] = {texts[0], texts[1]}, picks;
  for (int n = 0; n < 6; ++n) {
    TestStep input;
    for (std::size_t slot = 0; slot < 2; ++slot) {
      const std::size_t first = n == 0 ? 0 : text[slot].size() - 1;
      append(input, text[slot], first, text[slot].size() - first, slot,
             pages_from(static_cast<std::uint32_t>(8 * slot)), false);
      OutputRow& row = input.outputs.back();
      row.sampling = {{0.9f, 30, 0.95f, 0.01f, 0.9f}, 77 + static_cast<std::uint64_t>(n)};
      row.wants_logits = slot == 0;
      if (n == 2) row.is_masked = true;
      if (n == 3) row.is_processed = slot == 1;
      if (n >= 4) {
        row.sampling.repetition_penalty = 1.3f;
        row.history = text[slot];
        row.n_prompt = static_cast<std::uint32_t>(texts[slot].size());
        row.bias = bias;
        row.banned = banned;
      }
    }
    input.mask = [&](std::uint32_t row) { return row == 0 ? std::span(mask) : std::span<const std::uint32_t>(); };
    input.process = [](std::uint32_t, std::span<float> logits) { logits[42] += 30; };
    Outcome outcome;
    step(executor, std::move(input), outcome);
    for (std::size_t slot = 0; slot < 2; ++slot) text[slot].push_back(outcome.tokens[slot]);
    picks.insert(picks.end(), outcome.tokens.begin(), outcome.tokens.end());
  }
  return picks;
}

std::vector<std::byte> log_of_every_kind(bool has_all_logits = false) {
  LogFile file;
  {
    const auto executor = recording(open(kLogModel), file.path(), has_all_logits);
    run_every_kind(*executor);
  }
  return file.bytes();
}

TEST(StepLog, RecordingChangesNothing) {
  const auto plain = open(kLogModel);
  const auto wanted = run_every_kind(*plain);
  for (const bool has_all_logits : {false, true}) {
    LogFile file;
    const auto executor = recording(open(kLogModel), file.path(), has_all_logits);
    EXPECT_EQ(run_every_kind(*executor), wanted);
  }
}

TEST(StepLog, TheCallerGetsTheLogitsThatItWants) {
  LogFile file;
  const auto plain = open(kLogModel), inner = open(kLogModel);
  const auto executor = recording(open(kLogModel), file.path(), true);
  TestStep input;
  append(input, prompt(9), 0, 9, 0, pages_from(0));
  for (const std::size_t row : {0, 3, 4, 8}) input.outputs[row].wants_logits = false;
  Outcome wanted, got;
  step(*plain, input, wanted);
  step(*executor, input, got);
  EXPECT_EQ(wanted.logits.size(), 5u * plain->config().vocab_size);
  EXPECT_EQ(got, wanted);
}

TEST(StepLog, IsPlayedOnTCpu) {
  for (const bool has_all_logits : {false, true}) {
    const auto bytes = log_of_every_kind(has_all_logits);
    const auto replay = play_log(bytes);
    expect_equal(replay);
    EXPECT_EQ(replay->n_steps, 6u);
    EXPECT_EQ(replay->n_tokens, 20u + 7 + 5 * 2);
    EXPECT_EQ(replay->n_picks, 12u);
    EXPECT_EQ(replay->n_hashes, has_all_logits ? 12u : 6u);
    EXPECT_EQ(replay->n_without_results, 0u);
  }
}

TEST(StepLog, BelongsToItsOwnerAlone) {
  LogFile file;
  recording(open(kLogModel), file.path(), false).reset();
  struct stat info{};
  ASSERT_EQ(::stat(file.path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(StepLog, EachModelOfAProcessHasAFileOfItsOwn) {
  const LogFile folder;
  std::filesystem::create_directory(folder.path());
  auto options = small_options();
  options.step_log = folder.path() + "/steps.log";
  options.step_log_logits = true;
  {
    std::vector<std::unique_ptr<Executor>> executors;
    for (int i = 0; i < 2; ++i) {
      auto executor = open_executor(model_path(kLogModel), options);
      ASSERT_TRUE(executor) << executor.error().message;
      EXPECT_FALSE((*executor)->info().runs_ahead);  // the host waits for the logits
      executors.push_back(std::move(*executor));
    }
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) files.push_back(entry.path());
  EXPECT_EQ(files.size(), 2u);
  for (const auto& file : files) {
    EXPECT_TRUE(file.filename().string().starts_with("steps.log")) << file;
    EXPECT_FALSE(file.string().ends_with(".part")) << file;
    std::filesystem::remove(file);
  }
}

TEST(StepLog, HasAllThatAStepAsksFor) {
  const auto bytes = log_of_every_kind();
  const StepLog log = read_log(bytes);
  EXPECT_EQ(log.header.max_slots, 3u);
  EXPECT_EQ(log.header.tier, "t_cpu");
  EXPECT_EQ(log.header.model, std::filesystem::absolute(model_path(kLogModel)));
  ASSERT_EQ(log.records.size(), 12u);
  StepDecoder decoder(log.header);
  RecordedStep step;
  RecordedFinish finish;
  for (std::size_t n = 0; n < 6; ++n) {
    SCOPED_TRACE(n);
    ASSERT_TRUE(decoder.decode(log.records[2 * n], step));
    ASSERT_TRUE(decode_finish(log.records[2 * n + 1], finish));
    ASSERT_EQ(step.outputs.size(), 2u);
    EXPECT_EQ(step.token_ids.size(), n == 0 ? 27u : 2u);
    ASSERT_EQ(step.tables.size(), 2u);
    EXPECT_EQ(step.tables[1].slot, 1u);
    const auto pages = std::span(step.pages).subspan(step.tables[0].begin, step.tables[0].n);
    EXPECT_THAT(std::vector(pages.begin(), pages.end()), ElementsAre(0, 1));  // of 20 to 26 tokens
    const OutputRow& row = step.outputs[1];
    EXPECT_EQ(row.sampling.seed, 77 + n);
    EXPECT_EQ(row.sampling.top_k, 30u);
    EXPECT_EQ(row.sampling.typical_p, 0.9f);
    EXPECT_EQ(row.position, 7 + n);
    EXPECT_FALSE(row.wants_logits);
    EXPECT_EQ(row.is_masked, n == 2);
    EXPECT_EQ(row.is_processed, n == 3);
    EXPECT_EQ(finish.picks.size(), 2u);
    EXPECT_EQ(finish.masks.size(), n == 2 ? 2u : 0u);
    if (n == 2) {
      EXPECT_EQ(finish.mask_of(0).front(), 0x0F0F00F0u);
      EXPECT_TRUE(finish.mask_of(1).empty());
    }
    EXPECT_EQ(finish.changed_of(1).size(), n == 3 ? log.header.vocab_size : 0u);
    EXPECT_EQ(row.history.size(), n < 4 ? 0u : 7 + n);
    EXPECT_EQ(row.n_prompt, n < 4 ? 0u : 7u);
    if (n < 4) continue;
    EXPECT_TRUE(std::ranges::equal(row.history.first(7), prompt(7, 4)));
    ASSERT_EQ(row.bias.size(), 2u);
    EXPECT_EQ(row.bias[1].token_id, 9);
    EXPECT_EQ(row.bias[1].bias, -2.0f);
    EXPECT_THAT(std::vector(row.banned.begin(), row.banned.end()), ElementsAre(1, 2, 3));
    EXPECT_TRUE(shares_bias(row, step.outputs[0]));
  }
}

// The rows of a slot that verify a draft: each history is the beginning of the next, and the memory is the same.
TEST(StepLog, SharedHistoriesStayShared) {
  const auto text = prompt(40, 8);
  StepEncoder encoder(3);
  TestStep input;
  append(input, text, 30, 4, 1, pages_from(4), true);
  for (std::size_t i = 0; i < 4; ++i) input.outputs[i].history = std::span(text).first(31 + i);
  std::vector<std::byte> first, second;
  ASSERT_TRUE(encoder.can_encode(input.view()));
  encoder.encode(input.view(), false, first);
  encoder.encode(input.view(), true, second);
  // Of the second record the table and the histories are known but for what the first row takes back.
  EXPECT_EQ(second.size(), 16 + 3 * 4 * 4 + 16 + 4 * 80 + 3 * 4u);
  StepLogHeader header;
  header.max_slots = 3;
  StepDecoder decoder(header);
  RecordedStep step;
  for (const auto* bytes : {&first, &second}) {
    const auto status = decoder.decode({StepLogKind::kBegin, 0, *bytes}, step);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(step.is_ahead, bytes == &second);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(std::ranges::equal(step.outputs[i].history, std::span(text).first(31 + i)));
      EXPECT_EQ(step.outputs[i].history.data(), step.outputs[0].history.data());
    }
    EXPECT_EQ(step.tables[0].n, 3u);
  }
}

TEST(StepLog, AnotherPickIsReportedAtItsPlace) {
  auto bytes = log_of_every_kind();
  const StepLog log = read_log(bytes);
  // The last item of a kFinish has the picks, and the last of these is slot 1's.
  const StepLogRecord& finish = log.records[2 * 3 + 1];
  bytes[finish.offset + finish.bytes.size() - 4] ^= std::byte{1};
  const auto replay = play_log(bytes);
  ASSERT_TRUE(replay) << replay.error().message;
  EXPECT_EQ(replay->n_differences, 1u);
  ASSERT_TRUE(replay->first);
  EXPECT_EQ(replay->first->step, 4u);
  EXPECT_EQ(replay->first->quantity, StepDifference::Quantity::kPick);
  EXPECT_EQ(replay->first->row, 1u);
  EXPECT_EQ(replay->first->slot, 1);
  EXPECT_EQ(replay->first->position, 7 + 2);
  EXPECT_EQ(replay->first->wanted, replay->first->got ^ 1);
  EXPECT_EQ(replay->first->got, 42u);  // the token that the processor made likely
  EXPECT_EQ(to_string(*replay->first), "step 4, row 1 (slot 1, position 9): the pick is 42, 43 wanted");
}

TEST(StepLog, AnotherTokenGivesOtherLogitsFromItsStepOn) {
  auto bytes = log_of_every_kind(true);
  const StepLog log = read_log(bytes);
  const StepLogRecord& begin = log.records[2 * 2];
  bytes[begin.offset + 16] ^= std::byte{1};  // the token of slot 0
  const auto replay = play_log(bytes);
  ASSERT_TRUE(replay) << replay.error().message;
  ASSERT_TRUE(replay->first);
  EXPECT_EQ(replay->first->step, 3u);
  EXPECT_EQ(replay->first->slot, 0);
  EXPECT_GE(replay->n_differences, 4u);  // also of the steps that read its keys and values
}

TEST(StepLog, ACutFileIsReadUpToItsLastWholeRecord) {
  const auto bytes = log_of_every_kind();
  const StepLog whole = read_log(bytes);
  const std::uint64_t header_end = whole.records[0].offset - sizeof(StepLogHead);
  for (std::size_t n = 0; n < bytes.size(); n += n < 2000 ? 1 : 97) {
    const auto log = read_step_log(std::span(bytes).first(n));
    ASSERT_EQ(log.has_value(), n >= header_end) << n;
    if (!log) continue;
    std::size_t n_records = 0;
    while (n_records < whole.records.size() &&
           whole.records[n_records].offset + whole.records[n_records].bytes.size() <= n)
      ++n_records;
    EXPECT_EQ(log->records.size(), n_records) << n;
    EXPECT_TRUE(describe_step_log(*log, [](std::string_view) {}));
  }
  // The last step has begun and has no end: it is played, and nothing is compared.
  const auto replay = play_log(std::span(bytes).first(bytes.size() - 1));
  expect_equal(replay);
  EXPECT_EQ(replay->n_steps, 6u);
  EXPECT_EQ(replay->n_without_results, 1u);
  EXPECT_EQ(replay->n_picks, 10u);
}

TEST(StepLog, RefusedCallsAreNotPlayed) {
  LogFile file;
  {
    const auto executor = recording(open(kLogModel), file.path(), false);
    TestStep input;
    append(input, prompt(9), 0, 9, 0, pages_from(0));
    input.page_tables.push_back(pages_from(8));
    auto wrong = input;
    wrong.token_ids[3] = 100'000;
    StepOutput output;
    EXPECT_FALSE(executor->begin(wrong.view()));
    wrong = input;
    for (const std::int32_t slot : {-1, 1, 70}) {  // no record has such a form
      wrong.slots[3] = slot;
      EXPECT_FALSE(executor->begin(wrong.view()));
    }
    const PageCopy copies[] = {{0, 1'000'000}}, good[] = {{0, 9}};
    EXPECT_FALSE(executor->copy_pages(copies));
    EXPECT_TRUE(executor->copy_pages(good));
    Outcome outcome;
    step(*executor, input, outcome);
  }
  const auto bytes = file.bytes();
  std::vector<StepLogKind> kinds;
  for (const StepLogRecord& record : read_log(bytes).records) kinds.push_back(record.kind);
  EXPECT_THAT(kinds,
              ElementsAre(StepLogKind::kBegin, StepLogKind::kRefused, StepLogKind::kCopyPages, StepLogKind::kRefused,
                          StepLogKind::kCopyPages, StepLogKind::kBegin, StepLogKind::kFinish));
  const auto replay = play_log(bytes);
  expect_equal(replay);
  EXPECT_EQ(replay->n_steps, 1u);
  EXPECT_EQ(replay->n_picks, 9u);
}

TEST(StepLog, PagesThatWereWrittenAreWrittenAgain) {
  const auto source = open(kLogModel);
  Outcome outcome;
  TestStep input;
  append(input, prompt(16), 0, 16, 0, pages_from(0));
  step(*source, input, outcome);
  std::vector<std::byte> page(source->info().page_bytes);
  const std::uint32_t number[] = {0};
  ASSERT_TRUE(source->read_pages(number, page));
  LogFile file;
  {
    const auto executor = recording(open(kLogModel), file.path(), true);
    ASSERT_TRUE(executor->write_pages(number, page));
    TestStep next;
    append(next, prompt(17), 16, 1, 0, pages_from(0));
    step(*executor, next, outcome);
  }
  const auto bytes = file.bytes();
  const auto replay = play_log(bytes);
  expect_equal(replay);
  EXPECT_EQ(replay->n_hashes, 1u);
}

TEST(StepLog, HasTheHashesOfEmbeddings) {
  auto options = small_options();
  options.pooling = Pooling::kMean;
  LogFile file;
  {
    const auto executor = recording(open(kLogModel, options), file.path(), false);
    TestStep input;
    append(input, prompt(9), 0, 9, 0, pages_from(0), false);
    append(input, prompt(5, 2), 0, 5, 1, pages_from(8), false);
    std::size_t n = 0;
    input.on_embeddings = [&](std::uint32_t, std::span<const float> rows) { n += rows.size(); };
    StepOutput output;
    ASSERT_TRUE(executor->step(input.view(), output));
    EXPECT_EQ(n, 2u * executor->info().embedding_dim);
  }
  auto bytes = file.bytes();
  auto replay = play_log(bytes);
  expect_equal(replay);
  EXPECT_EQ(replay->n_hashes, 2u);
  bytes[read_log(bytes).records[0].offset + 16] ^= std::byte{1};  // the first token
  replay = play_log(bytes);
  ASSERT_TRUE(replay && replay->first);
  EXPECT_EQ(replay->n_differences, 1u);
  EXPECT_THAT(to_string(*replay->first), HasSubstr("step 1, row 0 (slot 0, position 8): the hash of the embedding is"));
}

TEST(StepLog, WhatTheExecutorDoesNotHaveIsNamed) {
  const auto bytes = log_of_every_kind();
  const auto refusal = [&](const auto& set) {
    const auto replay = play_log(bytes, set);
    return replay ? "none" : replay.error().message;
  };
  EXPECT_THAT(refusal([](ExecutorOptions& o) { o.kv_pages = 5; }),
              HasSubstr("n_pages was 24 in the log, tier t_cpu has 5 here"));
  EXPECT_THAT(refusal([](ExecutorOptions& o) { o.max_context = 64; }),
              HasSubstr("max_context was 128 in the log, tier t_cpu has 64 here"));
  EXPECT_THAT(refusal([](ExecutorOptions& o) { o.max_slots = 4; }),
              HasSubstr("max_slots was 3 in the log, tier t_cpu has 4 here"));
  EXPECT_THAT(refusal([](ExecutorOptions& o) { o.kv_type = find_kv_type("f32"); }),
              HasSubstr("kv_dtype was f16 in the log, tier t_cpu has f32 here"));
  const StepLog log = read_log(bytes);
  const auto other = open("tiny_llama_k-Q4_K_M");
  const auto status = check_replay(log.header, *other);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("is another one"));
}

// Whatever byte is wrong, the reader says so or reads something else; it never goes past a record.
TEST(StepLog, AnyWrongByteIsReadOrRefused) {
  auto bytes = log_of_every_kind();
  std::mt19937 rng(5);
  for (int i = 0; i < 4000; ++i) {
    const std::size_t at = rng() % std::min<std::size_t>(bytes.size(), 6000);
    const std::byte before = bytes[at];
    bytes[at] ^= static_cast<std::byte>(1 << rng() % 8);
    if (const auto log = read_step_log(bytes)) {
      if (const auto status = describe_step_log(*log, [](std::string_view) {}); !status) {
        EXPECT_THAT(status.error().message, HasSubstr("[step_log]"));
      }
    }
    bytes[at] = before;
  }
}

TEST(StepLog, AFullDiskEndsTheRecordingAndNoStep) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  LogFile file;
  const auto plain = open(kLogModel);
  const auto wanted = run_every_kind(*plain);
  {
    const auto executor = recording(open(kLogModel), file.path(), false);
    const rlimit small{2000, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    EXPECT_EQ(run_every_kind(*executor), wanted);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  }
  const auto bytes = file.bytes();
  EXPECT_EQ(bytes.size(), 2000u);
  const auto replay = play_log(bytes);
  expect_equal(replay);
  EXPECT_GT(replay->n_steps, 0u);
  EXPECT_LT(replay->n_steps, 6u);
}

// A step that begins ahead has tokens that the host does not know. They are played by an executor that runs ahead, and
// by one that does not.
TEST(StepLog, StepsAheadArePlayedWithAndWithoutRunningAhead) {
  for (const auto* model : {"tiny_llama-f32", "tiny_qwen35-f16"}) {
    auto options = small_options();
    options.run_ahead = true;
    LogFile file;
    {
      const auto executor = recording(open(model, options), file.path(), false);
      ASSERT_TRUE(executor->info().runs_ahead);
      std::vector<std::int32_t> texts[] = {prompt(21), prompt(5, 2)};
      std::array<TestStep, 2> inputs;
      StepOutput output;
      constexpr std::size_t kSteps = 14;
      for (std::size_t n = 0; n < kSteps; ++n) {
        TestStep& input = inputs[n % 2] = TestStep();
        for (std::size_t slot = 0; slot < 2; ++slot) {
          auto& text = texts[slot];
          if (n > 0) text.push_back(kLastPick);
          const std::size_t first = n == 0 ? 0 : text.size() - 1;
          append(input, text, first, text.size() - first, slot, pages_from(static_cast<std::uint32_t>(8 * slot)),
                 false);
          input.outputs.back().wants_logits = false;
        }
        const auto status = executor->begin(input.view());
        ASSERT_TRUE(status) << status.error().message;
        if (n > 0) {
          ASSERT_TRUE(executor->finish(output));
        }
      }
      ASSERT_TRUE(executor->finish(output));
    }
    const auto bytes = file.bytes();
    for (const bool runs_ahead : {true, false}) {
      const auto replay = play_log(bytes, [&](ExecutorOptions& o) { o.run_ahead = runs_ahead; });
      expect_equal(replay);
      EXPECT_EQ(replay->n_steps, 14u);
      EXPECT_EQ(replay->n_picks, 28u);
    }
  }
}

}  // namespace
}  // namespace zinc_rt
