// Runs before the scripts of a stored page on the origin of its site, and keeps what they do inside the archive: live
// addresses that they load, link to or go to become those of the archive, and time begins when the page was captured.
//
// It is for the page's convenience only. What keeps pages in is the policy of the server (replay_door.c), so whatever
// is missed here, or undone by a hostile page, fails instead of leaving.
//
//   live      https://www.example.org/x
//   stored    http://20260102030405-https-www-example-org.localhost:8081/x
'use strict';
(() => {
  const [digits, live] = document.currentScript.dataset.webbase.split(' ');
  document.currentScript.remove();
  const [, , time, base] = /^(.*\.)?(\d{14})-https?\d*-[a-z0-9_-]*\.(.+)$/.exec(location.host);
  const OWN = '/-webbase-/';

  // ---- addresses ----------------------------------------------------------------------------------

  const LABEL = '[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?';
  const CLEAR = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);

  // The origin of a live URL in the archive. The server knows how those are written that do not fit in one label.
  function storedOrigin({protocol, hostname, port, origin}) {
    const host = hostname.replace(/[.-]/g, c => c === '.' ? '-' : '--');
    const label = `${time}-${protocol.slice(0, -1)}${port}-${host}`;
    return CLEAR.test(hostname) && label.length <= 63 ? `${location.protocol}//${label}.${base}`
      : `${location.origin}${OWN}to/${origin}`;
  }

  const isStored = url => url.protocol === location.protocol && url.host.endsWith(`.${base}`);

  // What a page says as a URL, with its live origin exchanged for that in the archive. Everything else stays as it is.
  function stored(text) {
    const said = String(text);
    let url;
    try {
      url = new URL(said, document.baseURI);
    } catch {
      return text;
    }
    if (!/^https?:$/.test(url.protocol) || isStored(url)) return text;
    const rest = url.href.slice(url.origin.length);
    // Scripts put addresses together from parts of their own one: "https://" + location.hostname + "/x".
    if (url.hostname === location.hostname) return location.origin + rest;
    return storedOrigin(url) + rest;
  }

  function toLive(text) {
    let url;
    try {
      url = new URL(text);
    } catch {
      return text;
    }
    const site = isStored(url) && /^(?:(.+)\.)?\d{14}-(https?)(\d*)-(.*)$/.exec(url.host.slice(0, -base.length - 1));
    if (!site) return text;
    const host = site[1] || site[4].replace(/--?/g, s => s === '-' ? '.' : '-');
    return `${site[2]}://${host}${site[3] && ':'}${site[3]}${text.slice(url.origin.length)}`;
  }

  const isLive = text => /(?:https?:)?\/\//i.test(text);
  const storedSet = text => String(text).replace(/(^|[\s,])((?:https?:)?\/\/[^\s,]+)/gi, (_, front, url) => front + stored(url));
  const storedCss = text => !isLive(text) ? text : String(text).replace(
    /(url\(\s*["']?|@import\s+["'])((?:https?:)?\/\/[^"')\s]+)/gi, (_, front, url) => front + stored(url));
  const storedHtml = text => !isLive(text) ? text : storedCss(String(text).replace(
    /([\s"']srcset\s*=\s*)("[^"]*"|'[^']*')/gi, (_, front, set) => front + set[0] + storedSet(set.slice(1, -1)) + set[0]).replace(
    /([\s"'/](?:src|href|action|formaction|poster|data|background)\s*=\s*["']?\s*)((?:https?:)?\/\/[^"'\s>]+)/gi,
    (_, front, url) => front + stored(url)));

  // ---- wrapping -----------------------------------------------------------------------------------

  // Exchanges arguments of a function before it is called.
  function wrap(object, name, change) {
    const native = object && object[name];
    if (typeof native !== 'function') return;
    object[name] = new Proxy(native, {
      apply: (f, self, args) => Reflect.apply(f, self, change(args, self)),
      construct: (f, args, target) => Reflect.construct(f, change(args), target),
    });
  }

  const first = ([url, ...rest]) => url === undefined ? [] : [stored(url), ...rest];

  // Exchanges what is assigned to a property.
  function wrapSetter(type, name, change) {
    const own = type && Object.getOwnPropertyDescriptor(type.prototype, name);
    if (!own || !own.set) return;
    Object.defineProperty(type.prototype, name, {...own, set(value) {
      own.set.call(this, change(value));
    }});
  }

  function define(object, name, get, set) {
    Object.defineProperty(object, name, {configurable: true, enumerable: true, get, set});
  }

  // ---- what is loaded -----------------------------------------------------------------------------

  const request = ([what, ...rest]) => {
    if (!(what instanceof Request)) return first([what, ...rest]);
    const url = stored(what.url);
    return [url === what.url ? what : new Request(url, what), ...rest];
  };
  wrap(window, 'Request', request);
  wrap(window, 'fetch', request);
  wrap(XMLHttpRequest.prototype, 'open', ([method, url, ...rest]) => [method, stored(url), ...rest]);
  wrap(Navigator.prototype, 'sendBeacon', first);
  for (const name of ['EventSource', 'Worker', 'SharedWorker']) wrap(window, name, first);
  // These do not ask the policy, or cannot be replayed.
  for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'RTCDataChannel', 'WebTransport', 'cookieStore'])
    if (name in window) Object.defineProperty(window, name, {configurable: true, value: undefined});
  if (window.ServiceWorkerContainer)
    ServiceWorkerContainer.prototype.register = () =>
      Promise.reject(new DOMException('service workers are not replayed', 'NotSupportedError'));

  const URLS = {HTMLImageElement: ['src'], HTMLScriptElement: ['src'], HTMLLinkElement: ['href'], HTMLAnchorElement: ['href'],
    HTMLAreaElement: ['href'], HTMLIFrameElement: ['src'], HTMLFrameElement: ['src'], HTMLEmbedElement: ['src'],
    HTMLObjectElement: ['data'], HTMLMediaElement: ['src'], HTMLVideoElement: ['poster'], HTMLSourceElement: ['src'],
    HTMLTrackElement: ['src'], HTMLInputElement: ['src', 'formAction'], HTMLButtonElement: ['formAction'],
    HTMLFormElement: ['action'], HTMLBaseElement: ['href']};
  for (const [type, names] of Object.entries(URLS))
    for (const name of names) wrapSetter(window[type], name, stored);
  for (const type of [HTMLImageElement, HTMLSourceElement]) wrapSetter(type, 'srcset', storedSet);
  wrapSetter(HTMLIFrameElement, 'srcdoc', storedHtml);
  for (const type of [Element, window.ShadowRoot]) wrapSetter(type, 'innerHTML', storedHtml);
  wrapSetter(Element, 'outerHTML', storedHtml);
  wrapSetter(CSSStyleDeclaration, 'cssText', storedCss);
  wrap(CSSStyleDeclaration.prototype, 'setProperty', ([name, value, ...rest]) => [name, storedCss(value), ...rest]);
  for (const name of ['insertRule', 'replace', 'replaceSync'])
    wrap(CSSStyleSheet.prototype, name, ([css, ...rest]) => [storedCss(css), ...rest]);
  wrap(Element.prototype, 'insertAdjacentHTML', ([where, html]) => [where, storedHtml(html)]);
  wrap(Range.prototype, 'createContextualFragment', ([html]) => [storedHtml(html)]);
  for (const name of ['write', 'writeln']) wrap(Document.prototype, name, parts => [storedHtml(parts.join(''))]);

  const ATTRIBUTES = new Map([...['src', 'href', 'action', 'formaction', 'poster', 'data', 'background', 'xlink:href']
    .map(name => [name, stored]), ['srcset', storedSet], ['imagesrcset', storedSet], ['style', storedCss], ['srcdoc', storedHtml]]);
  const attribute = (name, value) => {
    const change = ATTRIBUTES.get(String(name).toLowerCase());
    return change && isLive(value) ? change(value) : value;
  };
  wrap(Element.prototype, 'setAttribute', ([name, value]) => [name, attribute(name, value)]);
  wrap(Element.prototype, 'setAttributeNS', ([space, name, value]) => [space, name, attribute(name, value)]);

  // What comes into the page in other ways is changed when it is there: it is loaded then.
  function mend(element, names = element.getAttributeNames()) {
    for (const name of names) {
      const before = element.getAttribute(name), after = attribute(name, before);
      if (after !== before) element.setAttribute(name, after);
    }
    if (element.localName === 'style' && isLive(element.textContent)) {
      const css = storedCss(element.textContent);
      if (css !== element.textContent) element.textContent = css;
    }
  }
  new MutationObserver(records => {
    for (const {type, target, attributeName, addedNodes} of records) {
      if (type === 'attributes') mend(target, [attributeName]);
      for (const node of addedNodes) {
        if (node.nodeType !== Node.ELEMENT_NODE) continue;
        mend(node);
        for (const inner of node.querySelectorAll('*')) mend(inner);
      }
    }
  }).observe(document, {subtree: true, childList: true, attributes: true, attributeFilter: [...ATTRIBUTES.keys()]});

  // ---- where the page goes ------------------------------------------------------------------------

  const tell = what => parent !== window && parent === top && top.postMessage({webbase: true, ...what}, '*');
  const askToOpen = url => {
    let outer = window;
    while (outer.parent !== top && outer !== top) outer = outer.parent;
    if (outer === window) tell({open: toLive(new URL(stored(url), document.baseURI).href)});
    else outer.postMessage({webbaseOpen: new URL(stored(url), document.baseURI).href}, '*');
  };

  // The frame that a name means; undefined: none, so that the name means a new window.
  function frameOf(name) {
    if (!name || /^_self$/i.test(name)) return window;
    let outer = window;
    while (outer.parent !== top && outer !== top) outer = outer.parent;
    if (/^_top$/i.test(name)) return outer;
    if (/^_parent$/i.test(name)) return window === outer ? outer : parent;
    if (/^_/.test(name)) return undefined;
    const all = [outer];
    for (const frame of all) {
      try {
        if (frame[name]?.window && frame[name].parent === frame) return frame[name];
      } catch { /* it has no such frame */ }
      for (let i = 0; i < frame.length && all.length < 100; i++) all.push(frame[i]);
    }
    return undefined;
  }

  // A sandbox keeps frames from navigating others, so they are asked to go themselves.
  function go(url, name) {
    const frame = frameOf(name);
    if (!frame) askToOpen(url);
    else if (frame === window) location.href = stored(url);
    else frame.postMessage({webbaseGo: new URL(stored(url), document.baseURI).href}, '*');
    return frame;
  }

  addEventListener('message', event => {
    const {webbaseGo, webbaseOpen} = Object(event.data);
    let origin;
    try {
      origin = new URL(nativeOrigin.call(event));
    } catch {
      return;
    }
    if (!isStored(origin) || !(webbaseGo || webbaseOpen)) return;
    event.stopImmediatePropagation();
    if (webbaseOpen) askToOpen(webbaseOpen);
    else location.href = stored(webbaseGo);
  }, true);

  function follow(event) {
    const link = event.composedPath().find(e => e instanceof Element && e.matches('a[href],area[href]'));
    if (!link || event.defaultPrevented || event.button > 1) return;
    const name = link.getAttribute('target') ?? document.querySelector('base[target]')?.target ?? '';
    const apart = event.button === 1 || event.ctrlKey || event.metaKey || event.shiftKey;
    const href = link.href instanceof SVGAnimatedString ? link.href.baseVal : link.href;
    if (/^javascript:/i.test(href) || (!apart && /^(_self)?$/i.test(name))) return;
    event.preventDefault();
    if (apart) askToOpen(href);
    else go(href, name);
  }
  addEventListener('click', follow);
  addEventListener('auxclick', follow);
  window.open = function open(url = 'about:blank', name = '_blank') {
    return go(url, String(name)) || null;
  };

  // Wherever a script, a link, a form or a refresh leads: out of the archive it goes to the archived address.
  if (window.navigation)
    navigation.addEventListener('navigate', event => {
      const url = new URL(event.destination.url);
      if (/^https?:$/.test(url.protocol) && !isStored(url) && event.cancelable) {
        event.preventDefault();
        const there = stored(url.href);
        if (event.navigationType === 'replace') setTimeout(() => location.replace(there));
        else setTimeout(() => location.href = there);
      } else if (!event.destination.sameDocument) {
        tell({to: toLive(url.href)});
      }
    });
  for (const name of ['pushState', 'replaceState'])
    wrap(History.prototype, name, ([state, title, ...url]) => [state, title, ...url.map(u => u == null ? u : stored(u))]);

  // ---- who the page is ----------------------------------------------------------------------------

  const cookie = Object.getOwnPropertyDescriptor(Document.prototype, 'cookie');
  define(Document.prototype, 'cookie', function () {
    return cookie.get.call(this);
  }, function (text) {
    const [value, ...attributes] = String(text).split(';');
    const kept = attributes.map(a => a.trim()).filter(a => /^(path|max-age)\s*=/i.test(a));
    const expires = attributes.map(a => /^\s*expires\s*=(.*)$/i.exec(a)?.[1]).find(a => a);
    // Its time is that of the page.
    if (expires && Date.parse(expires)) kept.push(`max-age=${Math.round((Date.parse(expires) - Date.now()) / 1000)}`);
    cookie.set.call(this, [value, ...kept, 'Secure', 'SameSite=None', 'Partitioned'].join('; '));
  });
  let domain = new URL(live).hostname;
  define(Document.prototype, 'domain', () => domain, name => {
    if (`.${domain}`.endsWith(`.${name}`)) domain = String(name);
    else throw new DOMException(`'${name}' is not a suffix of '${domain}'`, 'SecurityError');
  });
  const referrer = Object.getOwnPropertyDescriptor(Document.prototype, 'referrer').get;
  define(Document.prototype, 'referrer', function () {
    return toLive(referrer.call(this));
  });
  const nativeOrigin = Object.getOwnPropertyDescriptor(MessageEvent.prototype, 'origin').get;
  define(MessageEvent.prototype, 'origin', function () {
    return toLive(nativeOrigin.call(this));
  });
  const post = window.postMessage;
  window.postMessage = function postMessage(message, target, ...rest) {
    return Reflect.apply(post, this ?? window, [message, typeof target === 'string' && isLive(target) ? new URL(stored(target)).origin : target, ...rest]);
  };

  // ---- when it is ---------------------------------------------------------------------------------

  if (digits) {
    const [y, ...rest] = /^(\d{4})(..)(..)(..)(..)(..)$/.exec(digits).slice(1).map(Number);
    const NativeDate = Date, nativeNow = Date.now;
    const shift = NativeDate.UTC(y, rest[0] - 1, ...rest.slice(1)) - nativeNow();
    const now = () => nativeNow() + shift;
    const StoredDate = new Proxy(NativeDate, {
      apply: () => new NativeDate(now()).toString(),
      construct: (f, args, target) => Reflect.construct(f, args.length ? args : [now()], target),
    });
    NativeDate.now = now;
    NativeDate.prototype.constructor = StoredDate;
    window.Date = StoredDate;
    const origin = Object.getOwnPropertyDescriptor(Performance.prototype, 'timeOrigin');
    if (origin) define(Performance.prototype, 'timeOrigin', function () {
      return origin.get.call(this) + shift;
    });
  }

  // ---- the bar around the page --------------------------------------------------------------------

  let said = '';
  function sayWhere() {
    const what = {at: live + location.pathname + location.search + location.hash, time: digits, title: document.title};
    if (JSON.stringify(what) === said) return;
    said = JSON.stringify(what);
    tell(what);
  }
  sayWhere();
  document.addEventListener('DOMContentLoaded', sayWhere);
  addEventListener('load', () => {
    sayWhere();
    const title = document.querySelector('title');
    if (title) new MutationObserver(sayWhere).observe(title, {childList: true});
  });
  addEventListener('pageshow', event => {
    if (event.persisted) said = '';
    sayWhere();
  });
  if (window.navigation) navigation.addEventListener('currententrychange', sayWhere);
})();
