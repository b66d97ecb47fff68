// ResumableStream is a stream that survives the loss of its connection for a while. Its events are numbered, and the
// latest events are stored. A disconnected client reconnects with the number of the last event that it received.
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/api/api_error.h"
#include "server/http/http.h"

namespace zinc_rt::server {

class StreamRegistry;

// A job writes to this object in place of the client's connection. While no client is connected, the stream accepts
// events until kMostKept bytes wait. After that write() returns false, as for a slow reader. If the registry is full,
// the stream stores only events that its client has not received, and accepts no events while no client is connected.
class ResumableStream final : public Connection, public std::enable_shared_from_this<ResumableStream> {
 public:
  static constexpr std::size_t kMostKept = 1u << 20;  // the most bytes of events that a stream stores, sent or not
  // A connected client that lags behind by more bytes than this counts as slow.
  static constexpr std::size_t kMostUnsent = 64u << 10;
  // How long a stream without a client waits for one before it is cancelled, and how long an ended stream is stored.
  static constexpr std::chrono::seconds kWindow{30};

  ResumableStream(StreamRegistry& registry, std::string id, std::string owner, std::shared_ptr<Connection> client);

  void add_header(std::string name, std::string value) override;
  void note(std::string name, std::string value) override;
  void respond(HttpResponse response) override;
  void start_stream(HttpResponse head) override;
  bool write(std::string_view piece) override;  // `piece` consists of whole events
  void finish(std::string_view last) override;
  void abort() override;
  void on_gone(std::function<void()> left) override;  // called when kWindow has passed, or by discard()

  // Reconnects a client that has seen the events up to number `seen`. A client that is still connected is cut off.
  // Errors: 410 if events after `seen` are no longer stored; 400 if no event has the number `seen` yet.
  ApiResult<void> attach(std::shared_ptr<Connection> client, std::uint64_t seen);
  // Ends the stream because the client no longer wants it.
  void discard();
  // Sends waiting events. Returns false if the registry may drop the stream.
  bool sweep(std::chrono::steady_clock::time_point now);

  const std::string& id() const { return id_; }
  const std::string& owner() const { return owner_; }

 private:
  void end(std::string_view last, bool is_whole);
  void keep(std::string_view events);
  void trim();
  void send();
  void watch(const std::shared_ptr<Connection>& client);
  void client_left(const Connection* client);

  StreamRegistry& registry_;
  const std::string id_, owner_;
  std::mutex mutex_;
  // The connected client; null while no client is connected.
  std::shared_ptr<Connection> client_;
  HttpResponse head_;
  std::deque<std::string> events_;  // the stored events; their numbers are first_, first_ + 1, ...
  // Numbers of the oldest stored event, and of the next event to send to the client.
  std::uint64_t first_ = 1, next_sent_ = 1;
  std::size_t kept_bytes_ = 0, unsent_bytes_ = 0;
  // is_over_: finish() or abort() was called. is_whole_: it was finish().
  bool is_started_ = false, is_over_ = false, is_whole_ = false;
  std::chrono::steady_clock::time_point alone_since_, over_since_;
  // The callback of on_gone().
  std::function<void()> left_;
};

// StreamRegistry lists the streams that clients may reconnect to. The stored bytes are limited per tenant and in total.
// If a tenant exceeds its limit, its oldest finished streams are dropped. If the total exceeds its limit, those of the
// tenant with the most bytes are dropped.
class StreamRegistry {
 public:
  struct Limits {
    std::size_t in_all = 256u << 20, per_owner = 64u << 20;  // bytes
  };
  StreamRegistry() : StreamRegistry(Limits()) {}
  explicit StreamRegistry(const Limits& limits) : limits_(limits) {}

  void add(const std::shared_ptr<ResumableStream>& stream);
  // Returns the tenant's stream with this id. Errors: 404 if the id is unknown or the stream is another tenant's; 410
  // if the stream was dropped to make room.
  ApiResult<std::shared_ptr<ResumableStream>> find(const std::string& id, const std::string& owner);
  // Called periodically. Sends waiting events and drops streams whose time has passed.
  void sweep(std::chrono::steady_clock::time_point now);
  std::size_t size();

  // Streams call this to report how many bytes they store now.
  void keeps(const ResumableStream& stream, std::size_t n_bytes, bool is_over);
  // Returns whether the limit of this tenant, or of all streams together, is reached.
  bool is_full(const std::string& owner);

 private:
  using Streams = std::vector<std::shared_ptr<ResumableStream>>;
  struct Entry {
    std::shared_ptr<ResumableStream> stream;
    std::size_t n_bytes = 0;
    std::uint64_t over_as = 0;  // number of the stream's end among all ends, from 1 on; 0: the stream still runs
  };
  struct Dropped {
    std::string owner;
    std::chrono::steady_clock::time_point time;
    const char* whose;
    std::size_t most;
  };
  // The functions below require that the caller holds mutex_.
  void count(Entry& entry, std::size_t n_bytes);
  void erase(const std::string& id);
  Streams make_room(const std::string& owner);
  bool drop_oldest_of(const std::string& owner, const char* whose, std::size_t most, Streams& dropped);

  static constexpr std::size_t kMostDropped = 4096;  // how many ids of dropped streams are remembered, to answer 410
  static constexpr std::size_t kOfStream = 4096;     // bytes that count per stream in addition to its events
  const Limits limits_;
  std::mutex mutex_;
  // Key: the stream's id.
  std::map<std::string, Entry> streams_;
  std::map<std::string, std::size_t> by_owner_;  // key: owner; only owners with streams
  std::size_t n_bytes_ = 0;
  std::uint64_t n_over_ = 0;
  // Ended streams. Key: the owner and Entry::over_as; value: the stream's id.
  std::map<std::pair<std::string, std::uint64_t>, std::string> over_;
  // Streams that were dropped to make room. Key: the stream's id.
  std::map<std::string, Dropped> dropped_;
};

}  // namespace zinc_rt::server
