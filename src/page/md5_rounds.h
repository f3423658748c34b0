/*
 * md5_rounds.h - private to page: the constants of MD5 (RFC 1321) and its 64 steps, four at a time.
 *
 * The file that includes it defines FOUR(F, i, g0..g3, t0..t3), which does the steps i to i+3 with
 * the round's function F (F1 to F4), the words g of the block and the rotations t.
 */
#ifndef WB_PAGE_MD5_ROUNDS_H
#define WB_PAGE_MD5_ROUNDS_H

#include <stdint.h>

/* floor(2^32 * abs(sin(i + 1))) */
static const uint32_t wb_md5_sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static const uint32_t wb_md5_start[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};

#define WB_MD5_0(FOUR) FOUR(F1, 0, 0, 1, 2, 3, 7, 12, 17, 22)
#define WB_MD5_1(FOUR) FOUR(F1, 4, 4, 5, 6, 7, 7, 12, 17, 22)
#define WB_MD5_2(FOUR) FOUR(F1, 8, 8, 9, 10, 11, 7, 12, 17, 22)
#define WB_MD5_3(FOUR) FOUR(F1, 12, 12, 13, 14, 15, 7, 12, 17, 22)
#define WB_MD5_4(FOUR) FOUR(F2, 16, 1, 6, 11, 0, 5, 9, 14, 20)
#define WB_MD5_5(FOUR) FOUR(F2, 20, 5, 10, 15, 4, 5, 9, 14, 20)
#define WB_MD5_6(FOUR) FOUR(F2, 24, 9, 14, 3, 8, 5, 9, 14, 20)
#define WB_MD5_7(FOUR) FOUR(F2, 28, 13, 2, 7, 12, 5, 9, 14, 20)
#define WB_MD5_8(FOUR) FOUR(F3, 32, 5, 8, 11, 14, 4, 11, 16, 23)
#define WB_MD5_9(FOUR) FOUR(F3, 36, 1, 4, 7, 10, 4, 11, 16, 23)
#define WB_MD5_10(FOUR) FOUR(F3, 40, 13, 0, 3, 6, 4, 11, 16, 23)
#define WB_MD5_11(FOUR) FOUR(F3, 44, 9, 12, 15, 2, 4, 11, 16, 23)
#define WB_MD5_12(FOUR) FOUR(F4, 48, 0, 7, 14, 5, 6, 10, 15, 21)
#define WB_MD5_13(FOUR) FOUR(F4, 52, 12, 3, 10, 1, 6, 10, 15, 21)
#define WB_MD5_14(FOUR) FOUR(F4, 56, 8, 15, 6, 13, 6, 10, 15, 21)
#define WB_MD5_15(FOUR) FOUR(F4, 60, 4, 11, 2, 9, 6, 10, 15, 21)

#endif
