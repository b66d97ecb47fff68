#include "executor/recording_executor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "model/fingerprint.h"
#include "zinc_rt/version.h"

namespace zinc_rt {
namespace {

StepLogHeader header_of(const Executor& executor, bool has_all_logits) {
  const ExecutorInfo& info = executor.info();
  return {.model = absolute_path(executor.weights().path()),
          .model_name = executor.config().name,
          .fingerprint = fingerprint(executor.weights()),
          .model_bytes = executor.weights().total_bytes(),
          .build = kVersion,
          .arithmetic_version = kArithmeticVersion,
          .tier = info.tier,
          .device = info.device,
          .kv_dtype = info.kv_dtype,
          .pooling = std::string(to_string(info.pooling)),
          .activations = std::string(to_string(info.activations)),
          .arithmetic = std::string(to_string(info.arithmetic)),
          .fusion = info.fusion,
          .max_slots = info.max_slots,
          .max_context = info.max_context,
          .n_pages = info.n_pages,
          .chunk_cap = info.chunk_cap,
          .state_checkpoints = info.state_bytes_per_slot > 0 ? info.n_state_checkpoints : 0,
          .state_guesses = info.state_guesses,
          .vocab_size = executor.config().vocab_size,
          .has_all_logits = has_all_logits};
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

Result<std::unique_ptr<StepLogWriter>> StepLogWriter::create(const std::string& path, const StepLogHeader& header) {
  ZRT_TRY(auto file, OutputFile::create(path, FileAccess::kOwnerOnly));
  ZRT_CHECK_OK(file.write(kStepLogMagic));
  auto writer = std::unique_ptr<StepLogWriter>(new StepLogWriter(std::move(file), header.max_slots));
  const std::string text = to_json(header);
  writer->items_.resize(sizeof(StepLogHead));
  writer->write(StepLogKind::kHeader, writer->start(), bytes_of(text));
  return writer;
}

StepLogWriter::~StepLogWriter() {
  if (const auto status = file_.commit(); !status) log().error("[step_log] {}", status.error().message);
}

std::vector<std::byte>& StepLogWriter::start() {
  record_.resize(sizeof(StepLogHead));
  return record_;
}

void StepLogWriter::write(StepLogKind kind, std::vector<std::byte>& record, std::span<const std::byte> more) {
  if (is_stopped_) return;
  const StepLogHead head{static_cast<std::uint32_t>(kind), 0, record.size() - sizeof(StepLogHead) + more.size()};
  std::memcpy(record.data(), &head, sizeof head);
  auto status = file_.write(record);
  if (status && !more.empty()) status = file_.write(more);
  if (!status) stop(status.error().message);
}

void StepLogWriter::stop(std::string_view why) {
  if (std::exchange(is_stopped_, true)) return;
  log().error("[step_log] the recording ends, the steps go on: {}", why);
}

template <class Fill>
void StepLogWriter::attempt(const Fill& fill) {
  if (is_stopped_) return;
  try {
    fill();
  } catch (const std::bad_alloc&) {
    stop("no memory for a record");
  }
}

bool StepLogWriter::begin(const StepInput& input, bool is_ahead) {
  if (!encoder_.can_encode(input)) return false;
  attempt([&] {
    auto& record = start();
    encoder_.encode(input, is_ahead, record);
    write(StepLogKind::kBegin, record);
  });
  return !is_stopped_;
}

void StepLogWriter::add(StepItem item, std::uint32_t row, std::span<const std::byte> bytes) {
  attempt([&] { put_item(item, row, bytes, items_); });
}

void StepLogWriter::finish() {
  write(StepLogKind::kFinish, items_);
  items_.resize(sizeof(StepLogHead));
}

template <class Copy>
void StepLogWriter::copy(StepLogKind kind, std::span<const Copy> copies) {
  static_assert(sizeof(Copy) == 2 * sizeof(std::uint32_t));
  write(kind, start(), std::as_bytes(copies));
}

void StepLogWriter::write_pages(std::span<const std::uint32_t> pages, std::span<const std::byte> bytes) {
  attempt([&] {
    auto& record = start();
    const auto n = static_cast<std::uint32_t>(pages.size());
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(&n, 1)), std::as_bytes(pages)};
    for (const auto& part : parts) record.insert(record.end(), part.begin(), part.end());
    write(StepLogKind::kWritePages, record, bytes);
  });
}

void StepLogWriter::refuse(const Error& error) {
  write(StepLogKind::kRefused, start(), bytes_of(error.message));
}

Result<std::unique_ptr<Executor>> RecordingExecutor::create(std::unique_ptr<Executor> inner, const std::string& path,
                                                            bool has_all_logits) {
  ZRT_TRY(auto writer, StepLogWriter::create(path, header_of(*inner, has_all_logits)));
  return std::unique_ptr<Executor>(new RecordingExecutor(std::move(inner), std::move(writer), has_all_logits));
}

RecordingExecutor::RecordingExecutor(std::unique_ptr<Executor> inner, std::unique_ptr<StepLogWriter> writer,
                                     bool has_all_logits)
    : inner_(std::move(inner)), info_(inner_->info()), has_all_logits_(has_all_logits), writer_(std::move(writer)) {
  if (has_all_logits) info_.runs_ahead = info_.has_logprobs = false;
  functions_.on_logits = [this](std::uint32_t first, std::span<const float> logits) { give_logits(first, logits); };
  functions_.on_logprobs = [this](std::uint32_t first, std::span<const RowLogprobs> rows) {
    running_[first_running_].caller->on_logprobs(first, rows);
  };
  functions_.on_embeddings = [this](std::uint32_t first, std::span<const float> rows) {
    add_hashes(first, rows, info_.embedding_dim);
    running_[first_running_].caller->on_embeddings(first, rows);
  };
  functions_.mask = [this](std::uint32_t row) {
    const auto words = running_[first_running_].caller->mask(row);
    add(StepItem::kMask, row, std::as_bytes(words));
    return words;
  };
  functions_.process = [this](std::uint32_t row, std::span<float> logits) {
    running_[first_running_].caller->process(row, logits);
    add(StepItem::kChanged, row, std::as_bytes(logits));
  };
}

void RecordingExecutor::add(StepItem item, std::uint32_t row, std::span<const std::byte> bytes) {
  if (running_[first_running_].is_recorded) writer_->add(item, row, bytes);
}

void RecordingExecutor::add_hashes(std::uint32_t first, std::span<const float> rows, std::size_t width) {
  for (; !rows.empty(); rows = rows.subspan(width), ++first) {
    const std::uint64_t hash = hash_of_row(rows.first(width));
    add(StepItem::kHash, first, std::as_bytes(std::span(&hash, 1)));
  }
}

// Hashes the rows, and passes those that the caller wants to the caller, as groups of consecutive rows.
void RecordingExecutor::give_logits(std::uint32_t first, std::span<const float> logits) {
  const std::size_t width = config().vocab_size, n = logits.size() / width;
  add_hashes(first, logits, width);
  const StepInput& caller = *running_[first_running_].caller;
  if (!caller.on_logits) return;
  const auto rows = std::span(caller.outputs).subspan(first, n);
  const auto wants = [](const OutputRow& row) { return row.wants_logits; };
  for (auto from = std::ranges::find_if(rows, wants), to = from; from != rows.end();
       from = std::find_if(to, rows.end(), wants)) {
    to = std::find_if_not(from, rows.end(), wants);
    const auto begin = static_cast<std::size_t>(from - rows.begin()), count = static_cast<std::size_t>(to - from);
    caller.on_logits(first + static_cast<std::uint32_t>(begin), logits.subspan(begin * width, count * width));
  }
}

Status RecordingExecutor::begin(const StepInput& input) {
  if (n_running_ == std::size(running_)) return inner_->begin(input);  // which refuses it
  Running& next = running_[(first_running_ + n_running_) % 2];
  next.caller = &input;
  StepInput& own = next.input;
  own.token_ids.assign(input.token_ids.begin(), input.token_ids.end());
  own.positions.assign(input.positions.begin(), input.positions.end());
  own.slots.assign(input.slots.begin(), input.slots.end());
  own.token_types.assign(input.token_types.begin(), input.token_types.end());
  own.runs.assign(input.runs.begin(), input.runs.end());
  own.outputs.assign(input.outputs.begin(), input.outputs.end());
  own.page_tables = input.page_tables;
  own.rope_variants = input.rope_variants;
  own.features = input.features;
  own.on_features = input.on_features;  // not recorded: features are part of no result
  const bool reads_all = has_all_logits_ && info_.pooling == Pooling::kNone;
  if (reads_all)
    for (OutputRow& row : own.outputs) row.wants_logits = true;
  // What the caller has no function for is not asked of the executor.
  const auto set = [](auto& to, bool is_wanted, const auto& function) {
    if (is_wanted)
      to = function;
    else
      to = nullptr;
  };
  set(own.on_logits, reads_all || input.on_logits, functions_.on_logits);
  set(own.on_logprobs, static_cast<bool>(input.on_logprobs), functions_.on_logprobs);
  set(own.on_embeddings, static_cast<bool>(input.on_embeddings), functions_.on_embeddings);
  set(own.mask, static_cast<bool>(input.mask), functions_.mask);
  set(own.process, static_cast<bool>(input.process), functions_.process);
  // Recorded before it begins, so that the log of a step that ends the process has it.
  next.is_recorded = writer_->begin(input, n_running_ > 0);
  const auto status = inner_->begin(own);
  if (status) {
    ++n_running_;
    // A log with a hole would differ from there on.
    if (!next.is_recorded) writer_->stop("a step that no record can have");
  } else if (next.is_recorded) {
    writer_->refuse(status.error());
  }
  return status;
}

Status RecordingExecutor::finish(StepOutput& output) {
  const auto status = inner_->finish(output);
  if (status)
    add(StepItem::kPicks, 0, std::as_bytes(std::span(output.tokens)));
  else
    add(StepItem::kFailed, 0, bytes_of(status.error().message));
  if (running_[first_running_].is_recorded) writer_->finish();
  first_running_ = 1 - first_running_;
  --n_running_;
  return status;
}

// Records that the call failed which was recorded last.
Status RecordingExecutor::after(Status status) {
  if (!status) writer_->refuse(status.error());
  return status;
}

Status RecordingExecutor::copy_state(std::span<const StateCopy> copies) {
  writer_->copy(StepLogKind::kCopyState, copies);
  return after(inner_->copy_state(copies));
}

Status RecordingExecutor::copy_pages(std::span<const PageCopy> copies) {
  writer_->copy(StepLogKind::kCopyPages, copies);
  return after(inner_->copy_pages(copies));
}

Status RecordingExecutor::write_pages(std::span<const std::uint32_t> pages, std::span<const std::byte> from) {
  writer_->write_pages(pages, from);
  return after(inner_->write_pages(pages, from));
}

}  // namespace zinc_rt
