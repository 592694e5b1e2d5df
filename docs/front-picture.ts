/** Picture of the README: an API is imported on the left, and an agent calls its tools on the right. */
import type { Browser, Page } from 'playwright-core';
import type { Session } from './orders-session.ts';

const height = 540;
/** Sizes of the two panels. The dashboard shows its side bar from 768 px on. */
export const dashboardSize = { width: 776, height };
const terminalWidth = 440;
const gap = 20;

/** Address that the picture shows in place of the actual one. */
const displayedUrl = 'http://127.0.0.1:8080';

const colors = {
  light: { text: '#1a2027', muted: '#56616d', line: '#e4e7ec', panel: '#f7f8fa', tool: '#177538' },
  dark: { text: '#e9edf2', muted: '#a3aeba', line: '#262c34', panel: '#15191f', tool: '#6ed391' },
};

export type Scheme = keyof typeof colors;

/** Opens the import page, reads the description, and scrolls to its operations. */
export async function showImport(page: Page, description: object): Promise<void> {
  await page.goto('/servers/new/import');
  await page.getByRole('textbox', { name: 'Address or text' }).fill(JSON.stringify(description));
  await page.getByRole('button', { name: 'Read description' }).click();
  await page.getByRole('button', { name: 'Create server' }).waitFor();
  const { y = 0 } = (await page.getByRole('region', { name: 'Operations' }).boundingBox()) ?? {};
  await page.evaluate(`scrollBy(0, ${y - 24})`);
  await page.mouse.move(0, 0);
}

const escapeHtml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Draws both panels next to each other. */
export async function drawFrontPicture(
  browser: Browser,
  scheme: Scheme,
  dashboard: Buffer,
  { question, calls }: Session,
): Promise<Buffer> {
  const width = dashboardSize.width + gap + terminalWidth;
  const context = await browser.newContext({ viewport: { width, height }, deviceScaleFactor: 2, colorScheme: scheme });
  const page = await context.newPage();
  const { text, muted, line, panel, tool } = colors[scheme];
  const lines = [
    [
      'muted',
      `$ claude mcp add --transport http orders ${displayedUrl}/mcp/orders --header "Authorization: Bearer $TOOLHOST_API_KEY"`,
    ],
    ['muted', '\n$ claude'],
    ['', `\n> ${question}`],
    ...calls.flatMap(({ tool: name, args, result }) => [
      ['tool', `\n● orders › ${name}`],
      ['', `  ${JSON.stringify(args)}`],
      ['muted', `  → ${result}`],
    ]),
  ];
  const spans = lines.map(([kind = '', content = '']) => `<span class="${kind}">${escapeHtml(content)}</span>`);
  await page.setContent(`<style>
    body { margin: 0; display: flex; gap: ${gap}px }
    img, pre { box-sizing: border-box; height: ${height}px; border: 1px solid ${line}; border-radius: 12px }
    pre { flex: 1; margin: 0; padding: 20px; background: ${panel}; color: ${text}; white-space: pre-wrap;
      overflow-wrap: anywhere; font: 13px/20px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace }
    .muted { color: ${muted} } .tool { color: ${tool} }
  </style><img alt="" src="data:image/png;base64,${dashboard.toString('base64')}"><pre>${spans.join('\n')}</pre>`);
  const picture = await page.screenshot({ omitBackground: true });
  await context.close();
  return picture;
}
