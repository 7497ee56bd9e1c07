#pragma once

#define INTERLOCK_VERSION "0.1.0"
