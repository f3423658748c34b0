/* check.h - assertions that stay on in production: a bug stops the process. */
#ifndef WB_BASE_CHECK_H
#define WB_BASE_CHECK_H

#define WB_CHECK(cond) \
    ((cond) ? (void)0 : wb_check_failed(#cond, __FILE__, __LINE__, __func__))

_Noreturn void wb_check_failed(const char *cond, const char *file, int line, const char *func);

#endif
