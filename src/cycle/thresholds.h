/*
 * thresholds.h - the value that a visit must reach, learnt from cycle to cycle (DIR/thresholds): one threshold per
 * policy, and one per policy and class of sites. Losing them costs only a few cycles of learning, so a damaged file is
 * replaced.
 */
#ifndef WB_CYCLE_THRESHOLDS_H
#define WB_CYCLE_THRESHOLDS_H

#include "cycle/refresh.h"

struct wb_thresholds_row {
    enum wb_refresh_policy policy;
    char *class_name; /* NULL: for sites without a class, and for classes without their own number of fetches */
    double theta;
};

struct wb_thresholds {
    enum wb_refresh_policy policy; /* the one that the last generate used */
    struct wb_thresholds_row *rows;
    size_t count, cap;
};

/* A missing or damaged file gives empty thresholds; damage is reported through warn (may be NULL). */
int wb_thresholds_read(const char *dir, void (*warn)(void *context, const char *message), void *context,
                       struct wb_thresholds *thresholds_out);
int wb_thresholds_write(const char *dir, const struct wb_thresholds *thresholds);
void wb_thresholds_release(struct wb_thresholds *thresholds);

/* Returns a first threshold if none was learnt yet. An empty class_name means no class. */
double wb_thresholds_get(const struct wb_thresholds *thresholds, enum wb_refresh_policy policy,
                         struct wb_slice class_name);
int wb_thresholds_set(struct wb_thresholds *thresholds, enum wb_refresh_policy policy, struct wb_slice class_name,
                      double theta);

#endif
