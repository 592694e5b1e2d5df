import { Text } from '@mantine/core';
import type { AuditEvent, JsonObject } from '../api-types.ts';
import { isObject } from '../servers/config.ts';
import { Dash } from '../ui/rows.tsx';
import { accessKinds } from '../ui/text/access-badge.tsx';
import { PersonName } from '../ui/text/person-name.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { toVisible } from '../ui/text/visible.ts';

function Id({ children }: { children: string }) {
  return (
    <Text span display="inline-block" className="th-mono">
      {toVisible(children)}
    </Text>
  );
}

export function Actor({ event: { actor_kind, actor_id, actor_name, request_id } }: { event: AuditEvent }) {
  // The example server is created at the start of the service.
  if (actor_kind === 'service' || request_id === 'start') return 'Toolhost';
  if (actor_kind === 'operator') return <span title="On the machine of the service">Command line</span>;
  if (actor_name !== undefined) return <span title={actor_id}>{toVisible(actor_name)}</span>;
  return actor_kind === 'api_key' ? <Id>{actor_id}</Id> : <PersonName id={actor_id} />;
}

/** Operations whose target is a server slug. */
const serverOperations =
  /McpServer$|Version$|Secret$|Tool$|ServerLimits$|ServerTags$|^import|Import$|^captureCalls$|^login/;

type TargetProps = { event: AuditEvent; isLink?: boolean };

export function Target({ event: { target, target_name, operation }, isLink = true }: TargetProps) {
  if (target === undefined) return <Dash />;
  if (target_name !== undefined) return <span title={target}>{toVisible(target_name)}</span>;
  if (!isLink || !serverOperations.test(operation) || operation === 'deleteMcpServer') return <Id>{target}</Id>;
  const to = `/servers/${encodeURIComponent(target)}`;
  return (
    <TextLink to={to} underline="always" inherit className="th-mono">
      {toVisible(target)}
    </TextLink>
  );
}

/** Labels of details whose names do not say what they are. */
const detailLabels: { [name: string]: string } = {
  was: 'Previous name',
  origins: 'Sent to',
  watch: 'Checked daily',
  further: 'Further events',
  hours: 'Capture, hours',
  key_count: 'Active API keys',
  revoked_key_count: 'Revoked API keys',
};

/** Returns true for IDs. They are omitted, because the target's name is shown separately. */
const isId = (value: unknown): boolean =>
  Array.isArray(value) ? value.every(isId) : /^(?:grt|key|usr|srv|imp)_\w+$/.test(String(value));

function formatValue(value: unknown, name = ''): string {
  if (Array.isArray(value)) return value.map((item) => formatValue(item, name)).join(', ') || 'none';
  if (isObject(value)) return formatDetail(value, ', ');
  if (value === null) return 'default';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') return value.toLocaleString('en');
  const text = String(value);
  if (name === 'access') return accessKinds[text as keyof typeof accessKinds]?.name ?? text;
  return name === 'origins' ? text.replace(/^https:\/\//, '') : text;
}

/** Returns the details of an event as labels and texts: `{calls_per_day: 5}` → `[['Calls per day', '5']]`. */
export function getFacts(detail: JsonObject): [label: string, text: string][] {
  return Object.entries(detail)
    .filter(([, value]) => !isId(value))
    .map(([name, value]) => {
      const words = name.replaceAll('_', ' ');
      const label = detailLabels[name] ?? words.charAt(0).toUpperCase() + words.slice(1);
      return [toVisible(label), toVisible(formatValue(value, name))];
    });
}

/** Formats details on one line: `{version: 3, tools: 2}` → "Version: 3 · Tools: 2". */
export function formatDetail(detail: JsonObject, separator = ' · '): string {
  return getFacts(detail)
    .map(([label, text]) => `${label}: ${text}`)
    .join(separator);
}
