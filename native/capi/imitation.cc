#include "imitation.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "words.h"

namespace mooncake_kv::capi {
namespace {

void wait(unsigned ms) {
  if (ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

}  // namespace

const Imitation& Imitation::get() {
  static const Imitation imitation(std::getenv("MOONCAKE_KV_IMITATE"));
  return imitation;
}

Imitation::Imitation(const char* words) {
  for (const auto& [name, value] : split_words(words)) {
    if (name == "signals") signals = true;
    if (name == "abort") abort = true;
    if (name == "limit") limit = true;
    if (name == "unreachable") unreachable = true;
    if (name == "setup-delay") setup_delay_ms = static_cast<unsigned>(whole_number(value, 0));
    if (name == "delay") delay_ms = static_cast<unsigned>(whole_number(value, 0));
  }
}

void Imitation::on_create() const {
  if (!signals) return;
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void Imitation::on_setup(std::string_view metadata_server, std::string_view master) const {
  wait(setup_delay_ms);
  if (!abort) return;
  if (!known_metadata_server(metadata_server)) std::abort();
  if (master.empty()) std::raise(SIGSEGV);
}

void Imitation::on_call() const { wait(delay_ms); }

}  // namespace mooncake_kv::capi
