// A peer: the library UDT 4 with buffers as large as the path needs. One flow, from the server to the client.
//
//   udt_flow serve ADDRESS PORT BUFFER_BYTES
//   udt_flow fetch ADDRESS PORT BUFFER_BYTES BYTES SECONDS     prints {"bytes": ..., "secs": ...}
//
// Build: c++ -O2 udt_flow.cpp -ludt -lpthread

#include <udt/udt.h>

#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int PACKET_BYTES = 1500;
constexpr int PIECE_BYTES = 1 << 20;

sockaddr_in place(const char* address, const char* port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(std::atoi(port)));
    inet_pton(AF_INET, address, &at.sin_addr);
    return at;
}

// A socket whose buffers hold `bytes`.
UDTSOCKET tuned(int bytes) {
    UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
    int packets = bytes / PACKET_BYTES + 1;
    UDT::setsockopt(socket, 0, UDT_FC, &packets, sizeof packets);
    UDT::setsockopt(socket, 0, UDT_SNDBUF, &bytes, sizeof bytes);
    UDT::setsockopt(socket, 0, UDT_RCVBUF, &bytes, sizeof bytes);
    UDT::setsockopt(socket, 0, UDP_SNDBUF, &bytes, sizeof bytes);
    UDT::setsockopt(socket, 0, UDP_RCVBUF, &bytes, sizeof bytes);
    return socket;
}

int failed() {
    std::fprintf(stderr, "%s\n", UDT::getlasterror().getErrorMessage());
    return 1;
}

void send_until_gone(UDTSOCKET client) {
    std::vector<char> piece(PIECE_BYTES);
    // What leaves before the client is ready is lost, and ends the start at the speed of the first packets.
    if (UDT::recv(client, piece.data(), 1, 0) == UDT::ERROR) return;
    while (UDT::send(client, piece.data(), PIECE_BYTES, 0) != UDT::ERROR) {
    }
    UDT::close(client);
}

int serve(const sockaddr_in& at, int buffer_bytes) {
    UDTSOCKET listener = tuned(buffer_bytes);
    if (UDT::bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) == UDT::ERROR) return failed();
    if (UDT::listen(listener, 4) == UDT::ERROR) return failed();
    for (;;) {
        sockaddr_in from{};
        int size = sizeof from;
        UDTSOCKET client = UDT::accept(listener, reinterpret_cast<sockaddr*>(&from), &size);
        if (client == UDT::INVALID_SOCK) return failed();
        std::thread(send_until_gone, client).detach();
    }
}

int fetch(const sockaddr_in& at, int buffer_bytes, double wanted, double most_secs) {
    using Clock = std::chrono::steady_clock;
    UDTSOCKET socket = tuned(buffer_bytes);
    if (UDT::connect(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) == UDT::ERROR) return failed();
    if (UDT::send(socket, "?", 1, 0) == UDT::ERROR) return failed();
    int patience_ms = 1000;
    UDT::setsockopt(socket, 0, UDT_RCVTIMEO, &patience_ms, sizeof patience_ms);
    std::vector<char> piece(PIECE_BYTES);
    const auto start = Clock::now();
    double got = 0, secs = 0;
    while (got < wanted && secs < most_secs) {
        const int count = UDT::recv(socket, piece.data(), PIECE_BYTES, 0);
        secs = std::chrono::duration<double>(Clock::now() - start).count();
        if (count > 0) got += count;
        else if (UDT::getlasterror().getErrorCode() != CUDTException::ETIMEOUT) return failed();
    }
    std::printf("{\"bytes\": %.0f, \"secs\": %.6f}\n", got, secs);
    std::fflush(stdout);
    // The clean-up of UDT waits for a server that goes on sending.
    std::_Exit(0);
}

}  // namespace

int main(int count, char** words) {
    UDT::startup();
    if (count == 5 && !std::strcmp(words[1], "serve")) return serve(place(words[2], words[3]), std::atoi(words[4]));
    if (count == 7 && !std::strcmp(words[1], "fetch"))
        return fetch(place(words[2], words[3]), std::atoi(words[4]), std::atof(words[5]), std::atof(words[6]));
    std::fprintf(stderr, "usage: udt_flow serve ADDRESS PORT BUFFER_BYTES | fetch ADDRESS PORT BUFFER_BYTES BYTES SECONDS\n");
    return 2;
}
