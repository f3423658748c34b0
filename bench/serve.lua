-- Requests of bench/serve for wrk: the paths of a file, one after the other, each thread from another place.
--
--   wrk -s serve.lua URL -- FILE [WAIT]     WAIT: each connection waits up to twice so many ms before a request
--
-- Prints one JSON line at the end.
local paths, threads, at, wait = {}, 0, 0, 0

function setup(thread)
    thread:set('number', threads)
    threads = threads + 1
end

function init(args)
    for line in io.lines(args[1]) do
        paths[#paths + 1] = wrk.format('GET', line)
    end
    at = number * 7919
    wait = tonumber(args[2] or '0')
    math.randomseed(number + 1)
end

function delay()
    return wait > 0 and math.random(0, 2 * wait) or 0
end

function request()
    at = at + 1
    return paths[at % #paths + 1]
end

function done(summary, latency)
    local e = summary.errors
    io.write(string.format('{"requests":%d,"seconds":%.3f,"bytes":%d,"errors":%d,"p50_ms":%.3f,"p99_ms":%.3f,' ..
                           '"p999_ms":%.3f,"max_ms":%.3f}\n',
                           summary.requests, summary.duration / 1e6, summary.bytes,
                           e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50) / 1e3,
                           latency:percentile(99) / 1e3, latency:percentile(99.9) / 1e3, latency.max / 1e3))
end
