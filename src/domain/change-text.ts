import { shortText } from '../errors.ts';
import type { FieldChange } from './config-changes.ts';

/** Words for fields; the others are called by their names. */
const words: { readonly [field: string]: string } = {
  url: 'address',
  base_url: 'base address',
  timeout_ms: 'timeout',
  authentication: 'credential',
  oauth: 'login',
  tool_mode: 'how agents get the tools',
  response_transform: 'part of the answer',
  response_fields: 'fields to keep',
  max_answer_tokens: 'most tokens of an answer',
  response_limit_bytes: 'largest answer',
  body_template: 'template of the body',
  output_schema: 'output schema',
  forward_headers: 'headers passed on',
};

/** Words for the entries of a field that have names of their own. */
const entries: { readonly [field: string]: string } = {
  input_schema: 'argument',
  headers: 'header',
  variables: 'variable',
  credentials: 'credential',
  views: 'view',
};

/** The path beside it has the rest of a longer one. */
const longestText = 120;

/** What a change means, such as "list_orders: timeout changed" or "tool add_note added". Long names are cut. */
export function changeText(change: FieldChange): string {
  return shortText(meaningOf(change), longestText);
}

function meaningOf({ path, before, after }: FieldChange): string {
  const verb = before === undefined ? 'added' : after === undefined ? 'removed' : 'changed';
  if (path === '') return 'everything changed';
  if (path === 'tools')
    return before === undefined || after === undefined ? `tools ${verb}` : 'order of the tools changed';
  const [, tool, field] = /^tools\[([^\]]*)\]\.?(.*)$/.exec(path) ?? [];
  if (tool === undefined) return `${fieldText(path)} ${verb}`;
  if (field === '' || field === undefined) return `tool ${tool} ${verb}`;
  if (field === 'disabled') return `tool ${tool} ${after === true ? 'disabled' : 'enabled'}`;
  return `${tool}: ${fieldText(field)} ${verb}`;
}

/** `input_schema.count.description` → "description of argument count" */
function fieldText(path: string): string {
  const [field = '', name, ...inner] = path.split('.');
  const entry = entries[field];
  if (entry !== undefined && name !== undefined) {
    const what = `${entry} ${name}`;
    return inner.length === 0 || (field === 'variables' && inner[0] === 'value')
      ? what
      : `${inner.join('.')} of ${what}`;
  }
  const known = words[field] ?? field.replaceAll('_', ' ');
  return name === undefined ? known : `${[name, ...inner].join('.').replaceAll('_', ' ')} of the ${known}`;
}
