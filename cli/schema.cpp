// interlock schema: what a PostgreSQL store needs in its database, for people who make it by hand or change it over.
#include <algorithm>
#include <iostream>

#include "command.hpp"
#include "interlock/backend.hpp"

namespace cli {

int schema(const Arguments& arguments) {
  Parser parser("schema [OPTIONS]",
                "Prints the SQL that makes the schema of a PostgreSQL store, for databases where "
                "programs lack\n"
                "the right to make it. It also changes an older schema over, while no older "
                "program runs. It\n"
                "is safe to run again.",
                "  interlock schema --url postgres://db/app | psql -v ON_ERROR_STOP=1 -d app\n");
  parser.read(arguments);
  const auto url = interlock::Url::parse(store_url(parser.common));
  for (const auto& store : interlock::stores::all()) {
    if (std::find(store.schemes.begin(), store.schemes.end(), url.scheme) == store.schemes.end())
      continue;
    if (store.schema == nullptr) break;
    std::cout << store.schema();
    return kOk;
  }
  throw Failure(kUsage, url.to_string() +
                            " has no schema, only PostgreSQL has one; give --url "
                            "postgres://host/database");
}

}  // namespace cli
