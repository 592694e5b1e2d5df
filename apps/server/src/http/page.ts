import { createHash } from 'node:crypto';
import { invisibleCharacters } from '@toolhost/tool-config/invisible-characters';
import { html, raw } from 'hono/html';

/** Result of `html`. Its text is already escaped. */
export type Markup = ReturnType<typeof html>;

const style = `
:root { color-scheme: light dark; --ink: light-dark(#1a2027, #e9edf2); --soft: light-dark(#56616d, #a3aeba); --line: light-dark(#e4e7ec, #262c34);
  --paper: light-dark(#fff, #0e1115); --panel: light-dark(#f7f8fa, #15191f);
  --accent: light-dark(#0b5fce, #6aa8ff); --on-accent: light-dark(#fff, #07111f); --warn: light-dark(#8a5a00, #f0c56b);
  --good: light-dark(#177538, #6ed391); --bad: light-dark(#b3261e, #ff9c93); --input-line: light-dark(#828d99, #66717e); }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0; padding: 4rem 1rem; overflow-wrap: anywhere; }
main { max-width: 40rem; margin: 0 auto; padding: 2rem; border: 1px solid var(--line); border-radius: .75rem; }
h1 { font-size: 1.5rem; font-weight: 600; line-height: 2rem; letter-spacing: -.01em; text-wrap: balance; margin: 0 0 .5rem; } h2 { font-size: 1rem; font-weight: 600; letter-spacing: -.01em; margin: 2rem 0 .5rem; }
p { margin: .5rem 0; text-wrap: pretty; } a { color: var(--accent); } .soft, small { color: var(--soft); }
h1, dd { overflow: clip; }
code, pre { font: .8125rem/1.25rem ui-monospace, monospace; background: var(--panel); border-radius: .375rem; }
code { padding: .1rem .4rem; } pre { margin: .5rem 0; padding: .75rem 1rem; white-space: pre-wrap; }
dl { margin: 1.5rem 0; border-top: 1px solid var(--line); }
dl div { display: grid; grid-template-columns: 11rem 1fr; gap: 0 1rem; padding: .7rem 0; border-bottom: 1px solid var(--line); }
main > :last-child { margin-bottom: 0; } dl:last-child div:last-child { border: 0; padding-bottom: 0; }
dt { color: var(--soft); } dd { grid-column: 2; margin: 0; font-weight: 500; } dd + dd { margin-top: .5rem; } small { display: block; font-weight: 400; font-size: .875rem; }
dd ul { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem .4rem; font-weight: 400; }
.warn { background: color-mix(in srgb, var(--warn) 10%, var(--paper)); border-radius: .5rem; padding: .75rem 1rem; margin: 1.5rem 0; }
.mark { display: block; width: 2.5rem; height: 2.5rem; margin: 0 0 1rem; padding: .4rem; border: 2px solid; border-radius: 50%; fill: none; stroke: currentColor; stroke-width: 2.5; stroke-linecap: round; stroke-linejoin: round; }
.good { color: var(--good); } .bad { color: var(--bad); }
.brand { display: flex; align-items: center; gap: .6rem; font-weight: 600; margin: 0 0 2rem; }
.columns { display: grid; gap: 3rem 2.5rem; grid-template-columns: repeat(6, 1fr); } main:has(.columns) { max-width: 64rem; border: 0; }
.columns > * { grid-column: span 2; } .columns > :nth-child(-n + 2) { grid-column: span 3; } .columns :is(h2, pre) { margin-top: 0; }
.problems { background: color-mix(in srgb, var(--bad) 10%, var(--paper)); border-radius: .5rem; padding: .75rem 1rem; margin: 1.5rem 0; } .problems ul { margin: .25rem 0 0; padding: 0 0 0 1.25rem; }
.field { margin: 1.5rem 0; } .field label { display: block; font-weight: 500; margin: 0 0 .4rem; } .field label .soft { font-weight: 400; } .field small { margin: .4rem 0 0; }
.field input { font: inherit; width: 100%; min-height: 2.75rem; padding: .5rem .75rem; color: var(--ink); background: var(--paper); border: 1px solid var(--input-line); border-radius: .375rem; }
.field input[aria-invalid] { border-color: var(--bad); box-shadow: inset 0 0 0 1px var(--bad); }
.problem { color: var(--bad); font-size: .875rem; margin: .4rem 0 0; } .problem::before { content: '⚠ ' / 'Error: '; }
fieldset { border: 1px solid var(--line); border-radius: .5rem; padding: .25rem 1rem; margin: 1.5rem 0; } legend { color: var(--soft); padding: 0 .4rem; }
fieldset label { display: flex; gap: .75rem; align-items: baseline; padding: .7rem 0; border-bottom: 1px solid var(--line); font-weight: 500; } fieldset label:last-child { border: 0; }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.75rem; }
button, .button { font: inherit; font-weight: 500; text-align: center; padding: .65rem 1.5rem; min-height: 2.75rem; border-radius: .375rem; border: 1px solid var(--line); background: transparent; color: var(--ink); cursor: pointer; text-decoration: none; }
button:hover, .button:hover { border-color: currentColor; } .primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
@media (max-width: 40rem) {
  body { padding: 0; } main { padding: 1.5rem 1rem; border: 0; }
  .columns { grid-template-columns: none; } .columns > :nth-child(n) { grid-column: auto; } dl div { display: block; } dt { font-size: .875rem; } .actions > * { flex: 1 1 auto; }
}
`;

/** Source expression for the only style that these pages may apply, for their Content-Security-Policy. */
const styleSource = `'sha256-${createHash('sha256').update(style).digest('base64')}'`;

/** Allows only this style and, on pages with a form, submitting it to this service. */
export const pagePolicy = `default-src 'none'; style-src ${styleSource}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;

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
