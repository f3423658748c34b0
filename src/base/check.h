/*
 * check.h - assertions, which stay on in production.
 *
 * WB_CHECK states what must be true if our own code is right: the state a function expects, what it guarantees on
 * return. If it is false there is a bug, and going on could damage data, so the process stops. Never use it for what
 * comes from outside: damaged files, servers and users cause errors (base/error.h), not bugs. The condition is always
 * evaluated, also for its side effects.
 */
#ifndef WB_BASE_CHECK_H
#define WB_BASE_CHECK_H

#define WB_CHECK(cond) \
    ((cond) ? (void)0 : wb_check_failed(#cond, __FILE__, __LINE__, __func__))

_Noreturn void wb_check_failed(const char *cond, const char *file, int line, const char *func);

#endif
