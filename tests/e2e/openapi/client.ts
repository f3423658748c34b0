// Calls a server with a client whose types are generated from the description (openapi.ts beside it). TypeScript refuses
// this file if a parameter, a body or a member of an answer is not described. Prints what it got as JSON.
import createClient from "openapi-fetch";
import type { paths } from "./openapi.js";

const [baseUrl, url, token, site] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

function must<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (answer.data === undefined) throw new Error(`${answer.response.url}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

const search = must(await client.GET("/api/search", { params: { query: { q: "quokka", limit: 3, facet: ["site"] } } }));
const page = must(await client.GET("/api/page", { params: { query: { url } } }));
const versions = must(await client.GET("/api/versions", { params: { query: { url, limit: 10 } } }));
const links = must(await client.GET("/api/links", { params: { query: { url, dir: "out", limit: 2 } } }));
const stat = must(await client.GET("/api/stat"));
const stream = await client.GET("/api/stream", { params: { query: { format: "urls" } }, parseAs: "text" });
const captures = await client.GET("/cdx", { params: { query: { url, output: "json" } }, parseAs: "text" });
const push = must(await client.POST("/api/push", { body: { changed: [`http://${site}/new`], pages: [{ url: `http://${site}/page`, html: "<p>whole" }] } }));
const order = await client.POST("/api/control/{order}", { params: { path: { order: "pause" } }, body: {} });
const expunge = must(await client.POST("/api/expunge", { body: { what: `http://${site}/page` } }));
const wrong = await client.GET("/api/page", { params: { query: { url: "http://nowhere.example/" } } });

console.log(JSON.stringify({
  hits: search.hits.map((hit) => hit.url), facets: search.facets?.site?.map((f) => f.value), id: page.id, sha1: versions.versions.map((v) => v.sha1),
  links: links.links.map((link) => link.anchor), next: links.next, pages: stat.pages, generation: stat.index?.generation,
  streamed: (stream.data as string).trim().split("\n").length, captures: (captures.data as string).trim().split("\n").length,
  accepted: push.accepted, stored: push.stored, order: [order.response.status, order.error?.error], expunged: expunge.pages,
  wrong: [wrong.response.status, wrong.error?.error],
}));
