// What the documentation's code may take as given, so that a snippet shows only its point.
#pragma once

#include <interlock/interlock.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

// A client, already connected.
inline interlock::Client locks = interlock::connect("memory:");

// A lock of it.
inline interlock::Mutex mutex(locks, "billing:invoice-42");

// The reader's own work.
inline void work() {}

// The reader's own data, and a store for it that checks fences.
struct Invoice {};
inline Invoice invoice;
struct InvoiceStore {
  void write(const Invoice&, std::uint64_t /*fence*/) {}
};
inline InvoiceStore store;

// The reader's own cache, and what it is filled with.
inline std::optional<std::string> read_cache(const std::string& /*key*/) { return std::nullopt; }
inline void write_cache(const std::string& /*key*/, const std::string& /*value*/) {}
inline std::string fetch_rates(const std::string& key) { return "rates of " + key; }

// A snippet that says co_await is the body of this: it starts at once and nobody waits for it.
struct SnippetCoroutine {
  struct promise_type {
    SnippetCoroutine get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};
