import type { JsonObject } from '../api-types.ts';
import { toVisible } from '../ui/text/visible.ts';
import { asText } from './config.ts';

const maxListedHosts = 5;

/** Lists hosts. A host that depends on a field shows the label of the field, as on the pages of a login. */
export function formatHosts(hosts: readonly string[], fields: readonly JsonObject[]): string {
  const names = [...new Set(hosts)];
  const hiddenCount = names.length - maxListedHosts;
  const text = names.slice(0, maxListedHosts).join(', ') + (hiddenCount > 0 ? ` and ${hiddenCount} more hosts` : '');
  return text.replaceAll(/\{\{\s*(\w+)\s*\}\}/g, (placeholder: string, name: string) => {
    const label = fields.find((field) => field.name === name)?.label;
    return label === undefined ? placeholder : `‹${toVisible(asText(label))}›`;
  });
}
