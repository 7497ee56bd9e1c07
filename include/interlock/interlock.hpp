// All of Interlock. Start with mutex.hpp and lease.hpp.
#pragma once

#include "interlock/version.hpp"  // first: says which C++ it needs

#include "interlock/attempt.hpp"
#include "interlock/client.hpp"
#include "interlock/config.hpp"
#include "interlock/deadlock.hpp"
#include "interlock/duration.hpp"
#include "interlock/error.hpp"
#include "interlock/fenced.hpp"
#include "interlock/leader_election.hpp"
#include "interlock/lease.hpp"
#include "interlock/locking.hpp"
#include "interlock/multi_lock.hpp"
#include "interlock/mutex.hpp"
#include "interlock/observer.hpp"
#include "interlock/options.hpp"
#include "interlock/rw_lock.hpp"
#include "interlock/semaphore.hpp"
#include "interlock/single_flight.hpp"
#include "interlock/stores.hpp"
#include "interlock/task_queue.hpp"
#include "interlock/termination.hpp"
#include "interlock/with_lock.hpp"
