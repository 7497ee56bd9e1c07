// Passwords and tokens in places that others can see.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// Overwrites the passwords of URLs and the tokens in the arguments of this process, so that ps(1) does not
/// show them. Also in the words of a command that `run` starts: it has copies.
void hide_secrets(int argc, char** argv);

/// Whether there is something in the URL that others must not see.
bool has_secret(std::string_view url);

/// Whether a password stands in it. A URL that makes no sense may have one where nobody looks for it: that is
/// no reason to warn.
bool has_password(std::string_view url);

/// The variables by which a program gets the secrets of this store from its environment.
std::vector<std::string> secret_variables(const std::string& url);

}  // namespace cli
