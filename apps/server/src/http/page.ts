import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { invisibleCharacters } from '@toolhost/tool-config/invisible-characters';
import { html, raw } from 'hono/html';
import { resourceFolder } from '../resource-folder.ts';

/** Result of `html`. Its text is already escaped. */
export type Markup = ReturnType<typeof html>;

const style = `
:root { color-scheme: light dark; --text: light-dark(#1a2027, #e9edf2); --muted: light-dark(#56616d, #a3aeba); --line: light-dark(#e4e7ec, #262c34);
  --page: light-dark(#fff, #0e1115); --subtle: light-dark(#f7f8fa, #15191f); --control: light-dark(#828d99, #66717e);
  --accent: light-dark(#0b5fce, #6aa8ff); --on-accent: light-dark(#fff, #07111f);
  --good: light-dark(#177538, #6ed391); --warn: light-dark(#8a5a00, #f0c56b); --bad: light-dark(#b3261e, #ff9c93); }
@font-face { font-family: 'Geist fallback'; src: local('Arial'), local('Liberation Sans'), local('LiberationSans'), local('Helvetica'), local('Arimo'); size-adjust: 105.73%; ascent-override: 95.05%; descent-override: 27.9%; line-gap-override: 0%; }
* { box-sizing: border-box; }
body { font: .875rem/1.25rem Geist, 'Geist fallback', system-ui, sans-serif; color: var(--text); background: var(--page); margin: 0; padding: 8vh 1rem 4rem; overflow-wrap: anywhere; }
main { max-width: 36rem; margin: 0 auto; padding: 2rem; border: 1px solid var(--line); border-radius: .75rem; }
h1, h2 { font-weight: 600; letter-spacing: -.01em; text-wrap: balance; } h1 { font-size: 1.25rem; line-height: 1.75rem; margin: 0 0 .5rem; } h2 { font-size: 1rem; line-height: 1.5rem; margin: 2rem 0 .5rem; }
p { margin: .5rem 0; text-wrap: pretty; } a { color: var(--accent); } strong { font-weight: 500; } .soft, small { color: var(--muted); }
h1, dd { overflow: clip; }
code, pre { font: .8125rem/1.25rem ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; background: var(--subtle); border-radius: .375rem; }
code { padding: .1rem .4rem; } pre { margin: .5rem 0; padding: .75rem 1rem; border-radius: .5rem; white-space: pre-wrap; }
dl { margin: 1.5rem 0; border-top: 1px solid var(--line); }
dl div { display: grid; grid-template-columns: 11rem 1fr; gap: 0 1rem; padding: .75rem 0; border-bottom: 1px solid var(--line); }
main > :last-child { margin-bottom: 0; } dl:last-child div:last-child { border: 0; padding-bottom: 0; }
dt { color: var(--muted); } dd { grid-column: 2; margin: 0; font-weight: 500; } dd + dd { margin-top: .5rem; } small { display: block; font-weight: 400; font-size: .8125rem; }
dd ul { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem .4rem; font-weight: 400; }
.warn, .problems { border-radius: .5rem; padding: .75rem 1rem; margin: 1.5rem 0; }
.warn { background: color-mix(in srgb, var(--warn) 10%, var(--page)); } .problems { background: color-mix(in srgb, var(--bad) 10%, var(--page)); } .problems ul { margin: .25rem 0 0; padding: 0 0 0 1.25rem; }
.mark { display: block; width: 2.5rem; height: 2.5rem; margin: 0 0 1rem; padding: .4rem; border: 2px solid; border-radius: 50%; fill: none; stroke: currentColor; stroke-width: 2.5; stroke-linecap: round; stroke-linejoin: round; }
.good { color: var(--good); } .bad { color: var(--bad); }
.brand { display: flex; align-items: center; gap: .5rem; font-size: 1rem; line-height: 1.5rem; font-weight: 600; letter-spacing: -.01em; margin: 0 0 1.5rem; } .brand:has(+ .columns) { margin-bottom: 4rem; }
.columns { display: grid; gap: 4rem 3rem; grid-template-columns: repeat(6, 1fr); align-items: center; } main:has(.columns) { max-width: 70rem; border: 0; padding: 0 1rem; }
.columns > * { grid-column: span 2; align-self: start; } .columns > :nth-child(-n + 2) { grid-column: span 3; align-self: center; } .columns :is(h2, pre) { margin-top: 0; }
.columns h1 { font-size: 2.5rem; line-height: 2.875rem; letter-spacing: -.03em; margin-bottom: 1rem; } .columns h1 + p { font-size: 1rem; line-height: 1.5rem; max-width: 34rem; }
main:has(.sign-in) { max-width: 29rem; margin-top: 17vh; border: 0; } main:has(.sign-in) :is(form, button) { flex: 1; }
.field { margin: 1rem 0; } .field label { display: block; font-weight: 500; margin: 0 0 .375rem; } .field label .soft { font-weight: 400; } .field small, .problem { margin: .375rem 0 0; }
.field input { font: inherit; width: 100%; min-height: 2rem; padding: .25rem .75rem; color: var(--text); background: var(--page); border: 1px solid var(--control); border-radius: .375rem; }
.field input[aria-invalid] { border-color: var(--bad); box-shadow: inset 0 0 0 1px var(--bad); }
.problem { color: var(--bad); font-size: .8125rem; } .problem::before { content: '⚠ ' / 'Error: '; }
fieldset { border: 1px solid var(--line); border-radius: .5rem; padding: .25rem 1rem; margin: 1.5rem 0; } legend { color: var(--muted); padding: 0 .4rem; }
fieldset label { display: flex; gap: .75rem; align-items: baseline; padding: .75rem 0; border-bottom: 1px solid var(--line); font-weight: 500; } fieldset label:last-child { border: 0; }
.actions, .actions form { display: flex; flex-wrap: wrap; gap: .75rem; } .actions { margin-top: 1.5rem; }
button, .button { display: inline-flex; align-items: center; justify-content: center; font: inherit; font-weight: 500; text-align: center; padding: .25rem 1rem; min-height: 2rem; border-radius: .375rem; border: 1px solid var(--line); background: transparent; color: var(--text); cursor: pointer; text-decoration: none; }
button:hover, .button:hover { border-color: currentColor; } .primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
@media (pointer: coarse), (max-width: 40rem) { button, .button, .field input { min-height: 2.75rem; } .field input { font-size: 1rem; } }
@media (max-width: 48rem) { .columns { grid-template-columns: none; gap: 2.5rem; } .columns > :nth-child(n) { grid-column: auto; } .columns h1 { font-size: 2rem; line-height: 2.375rem; } .brand:has(+ .columns) { margin-bottom: 2.5rem; } }
@media (max-width: 40rem) {
  body { padding: 0; } main, main:has(.columns) { padding: 1.5rem 1rem; border: 0; }
  dl div { display: block; } .actions > *, .actions button { flex: 1 1 auto; }
}
`;

const assets = join(resourceFolder, 'dist', 'web', 'assets');

/** File of the dashboard's font. Undefined if the dashboard was not built; pages then have a font with its metrics. */
const fontFile = existsSync(assets) ? readdirSync(assets).find((name) => name.endsWith('.woff2')) : undefined;

const fontPlaceholder = '<!-- font -->';

/** Returns the rule that loads the font. Undefined on a server's own host, which does not serve it. */
function renderFontStyle(basePath: string | undefined): string | undefined {
  if (basePath === undefined || fontFile === undefined) return undefined;
  return `@font-face { font-family: Geist; font-weight: 400 600; font-display: optional; src: url('${basePath}/assets/${fontFile}') format('woff2'); }`;
}

const toStyleSource = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const styleSource = toStyleSource(style);

/**
 * Returns the Content-Security-Policy of a page, which allows only its styles, the font, and, on pages with a form,
 * submitting it to this service. `basePath` is the path of the base URL; undefined on a server's own host.
 */
export function getPagePolicy(basePath: string | undefined): string {
  const fontStyle = renderFontStyle(basePath);
  const fontSources = fontStyle === undefined ? '' : ` ${toStyleSource(fontStyle)}; font-src 'self'`;
  return `default-src 'none'; style-src ${styleSource}${fontSources}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;
}

/** Adds the font to a rendered page. `basePath` is that of its policy. */
export function addFont(page: string, basePath: string | undefined): string {
  const fontStyle = renderFontStyle(basePath);
  if (fontStyle === undefined) return page;
  const link = `<link rel="preload" as="font" type="font/woff2" href="${basePath}/assets/${fontFile}" crossorigin>`;
  return page.replace(fontPlaceholder, () => `${link}\n<style>${fontStyle}</style>`);
}

/** Returns the base path of pages with this link to the home page; undefined on a server's own host. */
export function toBasePath(homeUrl: string): string | undefined {
  return homeUrl.startsWith('/') ? homeUrl.slice(0, -1) : undefined;
}

/** Logo and name, above the title of a page. */
export const brand = html`<p class="brand"><svg width="28" height="28" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" fill="#0b5fce"/><path d="M8 11h16M16 11v11" stroke="#fff" stroke-width="3.4" stroke-linecap="round"/><circle cx="8" cy="22" r="2.2" fill="#fff"/><circle cx="24" cy="22" r="2.2" fill="#fff"/></svg>Toolhost</p>`;

/** Renders the frame of every server-rendered page: no script, readable in light and dark mode and on a phone. */
export function renderPage(title: string, body: Markup, head: Markup | '' = ''): string {
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${head}
<title>${title}</title>
<style>${raw(style)}</style>
${raw(fontPlaceholder)}
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`);
}

/**
 * Returns true if the client is a browser that shows the response to a person. Programs do not list HTML explicitly.
 */
export function acceptsPage(method: string | undefined, accept: string | undefined): boolean {
  return (method === 'GET' || method === 'HEAD') && (accept?.includes('text/html') ?? false);
}

/**
 * Renders a page for a URL that has nothing to show, at least at the moment: the reason, and a link to the home page.
 */
export function renderErrorPage(status: number, message: string, homeUrl: string): string {
  const sentence = `${message.charAt(0).toUpperCase()}${message.slice(1)}`;
  return renderPage(
    'Toolhost',
    html`<h1>${showInvisible(sentence)}</h1>
${status === 404 ? html`<p class="soft">The URL may be mistyped, or the page no longer exists.</p>` : ''}
<div class="actions"><a class="button primary" href="${homeUrl}">Go to the home page</a></div>`,
  );
}

/** Replaces invisible characters in external text with a visible one. */
export function showInvisible(text: string): string {
  return text.replaceAll(invisibleCharacters, '\ufffd');
}

/** Formats an external name as one line of visible text. */
export function toSingleLine(name: string): string {
  return showInvisible(name.replaceAll(/\s+/g, ' ').trim());
}
