import { truncateText } from '@toolhost/errors/errors';
import type { FieldChange } from '@toolhost/tool-config/config-changes';

/** Labels of fields. Other fields are shown by name. */
const fieldLabels: { readonly [field: string]: string } = {
  url: 'address',
  base_url: 'base address',
  timeout_ms: 'timeout',
  authentication: 'credential',
  oauth: 'login',
  tool_mode: 'tool delivery',
  response_transform: 'response transform',
  response_fields: 'response fields',
  max_response_tokens: 'max response tokens',
  response_limit_bytes: 'max response size',
  body_template: 'body template',
  output_schema: 'output schema',
  forward_headers: 'forwarded headers',
};

/** Labels for the entries of fields with named entries, such as `headers`. */
const entryLabels: { readonly [field: string]: string } = {
  input_schema: 'argument',
  headers: 'header',
  variables: 'variable',
  credentials: 'credential',
  views: 'view',
};

/** Maximum length of a change text. The path next to it shows more of a long name. */
const maxTextLength = 120;

/** Describes a change, such as "list_orders: timeout changed" or "tool add_note added". Long names are cut. */
export function formatChange(change: FieldChange): string {
  return truncateText(describeChange(change), maxTextLength);
}

/** `path` is a path in a configuration, such as `tools[list_orders].timeout_ms` or `views.read`. */
function describeChange({ path, before, after }: FieldChange): string {
  const verb = before === undefined ? 'added' : after === undefined ? 'removed' : 'changed';
  if (path === '') return 'everything changed';
  if (path === 'tools')
    return before === undefined || after === undefined ? `tools ${verb}` : 'order of the tools changed';
  const [, tool, field] = /^tools\[([^\]]*)\]\.?(.*)$/.exec(path) ?? [];
  if (tool === undefined) return `${formatField(path)} ${verb}`;
  if (field === '' || field === undefined) return `tool ${tool} ${verb}`;
  if (field === 'disabled') return `tool ${tool} ${after === true ? 'disabled' : 'enabled'}`;
  return `${tool}: ${formatField(field)} ${verb}`;
}

/** Describes a field: `input_schema.count.description` → "description of argument count". */
function formatField(path: string): string {
  const [field = '', name, ...inner] = path.split('.');
  const entry = entryLabels[field];
  if (entry !== undefined && name !== undefined) {
    const label = `${entry} ${name}`;
    return inner.length === 0 || (field === 'variables' && inner[0] === 'value')
      ? label
      : `${inner.join('.')} of ${label}`;
  }
  const fieldLabel = fieldLabels[field] ?? field.replaceAll('_', ' ');
  return name === undefined ? fieldLabel : `${[name, ...inner].join('.').replaceAll('_', ' ')} of the ${fieldLabel}`;
}
