#include "server/batches/file_sender.h"

#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

namespace zinc_rt::server {
namespace {

constexpr std::size_t kPieceBytes = 64u << 10;
constexpr std::chrono::milliseconds kFull{2};  // the pause before the next try, if the client takes no bytes

struct Sending {
  std::shared_ptr<Connection> connection;
  std::stop_token gone;
  std::string owner;
  std::ifstream in;
  std::string piece;  // bytes that were read from the file but not yet taken by the client
};

void send_piece(ServerCore& core, const std::shared_ptr<Sending>& sending) {
  if (sending->gone.stop_requested() || core.is_closing) return sending->connection->abort();
  if (sending->piece.empty()) {
    sending->piece.resize(kPieceBytes);
    sending->in.read(sending->piece.data(), static_cast<std::streamsize>(kPieceBytes));
    sending->piece.resize(static_cast<std::size_t>(sending->in.gcount()));
  }
  if (sending->piece.empty()) return sending->in.bad() ? sending->connection->abort() : sending->connection->finish({});
  if (sending->connection->write(sending->piece))
    sending->piece.clear();
  else
    std::this_thread::sleep_for(kFull);
  core.transfers.post(sending->owner, [&core, sending] { send_piece(core, sending); });
}

}  // namespace

bool send_file(ServerCore& core, Exchange& exchange, const std::string& path, HttpResponse head) {
  auto sending = std::make_shared<Sending>();
  sending->in.open(path, std::ios::binary);
  if (!sending->in) return false;
  sending->connection = exchange.connection;
  sending->gone = exchange.gone.get_token();
  sending->owner = exchange.caller.tenant ? exchange.caller.tenant->name : "";
  exchange.connection->start_stream(std::move(head));
  if (exchange.request.method == "HEAD") return true;
  core.transfers.post(sending->owner, [&core, sending] { send_piece(core, sending); });
  return true;
}

}  // namespace zinc_rt::server
