// Something to do once, and to be moved about until then: std::function can't carry what can't be
// copied. It is written where it is handed over, like one.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace interlock::io {

template <class... Args>
class Task {
 public:
  Task() = default;
  // NOLINTBEGIN(google-explicit-constructor,bugprone-forwarding-reference-overload)
  template <class What>
  requires(!std::is_same_v<std::remove_cvref_t<What>, Task>) Task(What&& what)
      : body_(std::make_unique<Of<std::remove_cvref_t<What>>>(std::forward<What>(what))) {}
  // NOLINTEND(google-explicit-constructor,bugprone-forwarding-reference-overload)

  void operator()(Args... args) const { body_->run(std::forward<Args>(args)...); }
  explicit operator bool() const noexcept { return body_ != nullptr; }

 private:
  struct Body {
    Body() = default;
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;
    virtual ~Body() = default;
    virtual void run(Args... args) = 0;
  };
  template <class What>
  struct Of final : Body {
    explicit Of(What what_) : what(std::move(what_)) {}
    void run(Args... args) override { what(std::forward<Args>(args)...); }
    What what;
  };

  std::unique_ptr<Body> body_;
};

}  // namespace interlock::io
