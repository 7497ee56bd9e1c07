#pragma once

#if __cplusplus < 202002L
#error "Interlock needs C++20: -std=c++20"
#endif

#define INTERLOCK_VERSION "0.2.0"
