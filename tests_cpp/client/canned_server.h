// A server that answers each connection with bytes that a test made up.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "client/http_client.h"

namespace zinc_rt::client {

class CannedServer {
 public:
  // serve(socket, number of the connection) runs on the server's thread; the socket is closed after it.
  explicit CannedServer(std::function<void(int, int)> serve) : serve_(std::move(serve)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    url_.host = "127.0.0.1";
    url_.port = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (int number = 0;; ++number) {
        const int socket = ::accept(listener_, nullptr, nullptr);
        if (socket < 0) return;
        ++n_connections_;
        serve_(socket, number);
        ::close(socket);
      }
    });
  }
  ~CannedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  CannedServer(const CannedServer&) = delete;
  CannedServer& operator=(const CannedServer&) = delete;

  // Reads a whole request, and gives its head; empty: the client left.
  static std::string request(int socket) {
    std::string got;
    char byte;
    while (!got.ends_with("\r\n\r\n") && ::recv(socket, &byte, 1, 0) == 1) got += byte;
    if (!got.ends_with("\r\n\r\n")) return {};
    const auto length = got.find("Content-Length: ");
    for (int n = length == std::string::npos ? 0 : std::stoi(got.substr(length + 16)); n > 0; --n)
      if (::recv(socket, &byte, 1, 0) != 1) return {};
    return got;
  }
  static void send(int socket, std::string_view bytes) { ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

  const Url& url() const { return url_; }
  int n_connections() const { return n_connections_; }

 private:
  std::function<void(int, int)> serve_;
  int listener_ = -1;
  Url url_;
  std::atomic<int> n_connections_{0};
  std::thread thread_;
};

}  // namespace zinc_rt::client
