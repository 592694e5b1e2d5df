import { getPlaceholderNames } from '@toolhost/tool-config/http/placeholders';
import type { JsonObject } from '../api-types.ts';
import { toVisible } from '../ui/text/visible.ts';
import { asText, type Config, getLoginFields, getTools, getValueAt, isDisabled, isObject } from './config.ts';

/**
 * Returns the hosts that receive the value of each field of the login, with the variables of the server
 * (`packages/tool-config/src/field-hosts.ts`, for a configuration that is being edited).
 */
export function getFieldHosts(config: Config): Map<string, string[]> {
  const { authentication, credentials, headers, base_url } = config;
  const hostsByName = new Map(getLoginFields(config).map(({ name }) => [asText(name), new Set<string>()]));
  const sharedNames = hostsByName.size > 0 ? getPlaceholderNames([authentication, credentials, headers]) : [];
  for (const tool of hostsByName.size > 0 ? getTools(config) : []) {
    const url = asText(tool.url);
    const fullUrl = url.startsWith('/') ? asText(base_url) + url : url;
    const host = /^https?:\/\/([^/?#]+)/.exec(interpolateVariables(fullUrl, config))?.[1];
    if (host === undefined || isDisabled(tool)) continue;
    const ownNames = getPlaceholderNames([fullUrl, tool.headers, tool.body_template, tool.input_schema]);
    for (const name of [...sharedNames, ...ownNames]) hostsByName.get(name)?.add(host);
  }
  return new Map([...hostsByName].map(([name, hosts]) => [name, [...hosts].sort()]));
}

function interpolateVariables(text: string, { variables }: Config): string {
  const getVariable = (placeholder: string, name: string) =>
    isObject(variables) ? asText(getValueAt(variables, [name, 'value'])) || placeholder : placeholder;
  return text.replaceAll(/\{\{\s*(\w+)\s*\}\}/g, getVariable);
}

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
