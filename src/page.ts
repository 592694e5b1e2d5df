import { createHash } from 'node:crypto';
import { html, raw } from 'hono/html';

/** What `html` gives; text in it is escaped already. */
export type Markup = ReturnType<typeof html>;

const style = `
:root { color-scheme: light dark; --ink: light-dark(#1b2229, #e8ecf1); --soft: light-dark(#55606c, #a5afbb); --line: light-dark(#d5dbe1, #37404a);
  --paper: light-dark(#fff, #14181d); --panel: light-dark(#f5f7f9, #1d232a); --accent: light-dark(#0b5fce, #7db4ff); --on-accent: light-dark(#fff, #0b1420);
  --warn: light-dark(#fff4dd, #3a2d10); --warn-line: light-dark(#e2b659, #8a6a20); }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 40rem; margin: 0 auto; padding: 3rem 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; } h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
a { color: var(--accent); } .soft { color: var(--soft); }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; overflow-x: auto; }
dl { background: var(--panel); border: 1px solid var(--line); border-radius: .6rem; padding: .25rem 1rem; margin: 1.5rem 0; }
dl div { padding: .6rem 0; border-bottom: 1px solid var(--line); } dl div:last-child { border-bottom: 0; }
dt { color: var(--soft); font-size: .875rem; } dd { margin: 0; font-weight: 600; } dd small { display: block; font-weight: 400; color: var(--soft); }
.warn { background: var(--warn); border: 1px solid var(--warn-line); border-radius: .6rem; padding: .75rem 1rem; margin: 1.5rem 0; }
.actions { display: flex; gap: .75rem; flex-wrap: wrap; margin-top: 1.75rem; }
button, .button { font: inherit; font-weight: 600; padding: .65rem 1.5rem; border-radius: .5rem; border: 1px solid var(--line); background: transparent; color: var(--ink); cursor: pointer; text-decoration: none; min-height: 2.75rem; }
.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
`;

/** The only style that runs on these pages, for their Content-Security-Policy. */
const styleSource = `'sha256-${createHash('sha256').update(style).digest('base64')}'`;

/** Nothing but our own style and, where a page has a form, sending it to ourselves. */
export const pagePolicy = `default-src 'none'; style-src ${styleSource}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;

/** The frame of every page that the service renders itself: no script, readable in light and dark and on a phone. */
export function page(title: string, body: Markup, head: Markup | '' = ''): string {
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

/** Control, bidirectional and zero-width characters would let a name pose as something else. */
export function visible(text: string): string {
  return text.replaceAll(/[^\P{C}\n\t]/gu, '\ufffd');
}
