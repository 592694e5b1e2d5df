import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { runToolhostCommand } from '../toolhost/toolhost-command.ts';
import { type Block, getSkipReason } from './blocks.ts';

type Json = Record<string, unknown>;

const tool = {
  name: 'get_thing',
  description: 'Get a thing by its id',
  method: 'GET',
  url: 'https://api.example.com/',
};
/** Top-level fields that only a configuration has, and no other file. */
const configurationFields = [
  'tools',
  'authentication',
  'oauth',
  'tool_mode',
  'max_response_tokens',
  'base_url',
  'variables',
  'views',
];

type Views = Record<string, { tools?: (string | { name: string; arguments?: Json })[]; tags?: string[] }>;

/** Returns tools for views that a page shows without their server. */
function createToolsFor(views: Views): Json[] {
  const all = Object.values(views);
  const tags = all.flatMap((view) => view.tags ?? []);
  const references = all
    .flatMap((view) => view.tools ?? [])
    .map((one) => (typeof one === 'string' ? { name: one } : one));
  return references.map(({ name, arguments: fixed = {} }: { name: string; arguments?: Json }) => ({
    ...{ ...tool, name, tags: [...new Set(tags)] },
    input_schema: Object.fromEntries(Object.keys(fixed).map((argument) => [argument, { type: 'string' }])),
  }));
}

/** Completes a block to a configuration. The block is a server, some of its fields, or one tool. */
function completeConfiguration(value: Json, number: number): Json | undefined {
  if ('method' in value && 'url' in value) return { name: 'Page', slug: `page-${number}`, tools: [value] };
  if (!configurationFields.some((field) => field in value)) return undefined;
  if ('views' in value && !('tools' in value)) return { ...value, tools: createToolsFor(value.views as Views) };
  const usesToken = 'authentication' in value && !('tools' in value);
  return { name: 'Page', slug: `page-${number}`, tools: usesToken || !('tools' in value) ? [tool] : [], ...value };
}

/** Returns the problems of a page: blocks that are invalid JSON or YAML, and configurations that `toolhost check` rejects. */
export async function checkConfigurations(blocks: readonly Block[]): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-page-'));
  const problems: string[] = [];
  let fileCount = 0;
  try {
    for (const block of blocks) {
      if (!['json', 'yaml'].includes(block.language) || getSkipReason(block) !== undefined) continue;
      const location = `${block.page}:${block.line}`;
      for (const document of parseAllDocuments(block.text)) {
        if (document.errors.length > 0 || (block.language === 'json' && !isJson(block.text)))
          problems.push(`${location} is not valid ${block.language.toUpperCase()}`);
        const value = document.toJS() as Json;
        const configuration = typeof value === 'object' ? completeConfiguration(value, block.line) : undefined;
        if (configuration)
          writeFileSync(join(folder, `line-${block.line}-${++fileCount}.json`), JSON.stringify(configuration));
      }
    }
    if (fileCount === 0) return problems;
    const { code, stdout, stderr } = await runToolhostCommand(['check', folder]);
    return code === 0 ? problems : [...problems, `${blocks[0]?.page}: ${stdout}${stderr}`];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
