/*
 * thresholds.h - what a visit must be worth, learnt from cycle to cycle (DIR/thresholds): one number a policy, and one a policy
 * and class of sites. Losing them costs a few cycles of learning, so a damaged file is begun anew.
 */
#ifndef WB_CYCLE_THRESHOLDS_H
#define WB_CYCLE_THRESHOLDS_H

#include "cycle/refresh.h"

struct wb_threshold {
    enum wb_policy policy;
    char *class_name; /* NULL: of the sites without one, and of classes without fetches of their own */
    double theta;
};

struct wb_thresholds {
    enum wb_policy policy; /* the one in use */
    struct wb_threshold *rows;
    size_t count, cap;
};

/* What is not there, or cannot be read, is empty; damage is told through warn (may be NULL). */
int wb_thresholds_read(const char *dir, void (*warn)(void *context, const char *message), void *context, struct wb_thresholds *thresholds_out);
int wb_thresholds_write(const char *dir, const struct wb_thresholds *thresholds);
void wb_thresholds_release(struct wb_thresholds *thresholds);

/* class_name empty: none. A threshold to begin with where there is no row. */
double wb_thresholds_get(const struct wb_thresholds *thresholds, enum wb_policy policy, struct wb_slice class_name);
int wb_thresholds_set(struct wb_thresholds *thresholds, enum wb_policy policy, struct wb_slice class_name, double theta);

#endif
