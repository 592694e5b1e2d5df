import { Text } from '@mantine/core';
import type { AuditEvent } from '../api-types.ts';
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

export function Actor({ event: { actor_kind, actor_id, actor_name } }: { event: AuditEvent }) {
  if (actor_kind === 'operator') return 'Operator';
  if (actor_kind === 'service') return 'Toolhost';
  if (actor_name !== undefined) return <span title={actor_id}>{toVisible(actor_name)}</span>;
  return actor_kind === 'api_key' ? <Id>{actor_id}</Id> : <PersonName id={actor_id} />;
}

/** Operations whose target is a server slug. */
const serverOperations = /McpServer$|Version$|Secret$|Tool$|ServerLimits$|ServerTags$|^import|Import$|^captureCalls$/;

type TargetProps = { event: AuditEvent; isInline?: boolean };

export function Target({ event: { target, target_name, operation }, isInline = false }: TargetProps) {
  if (target === undefined) return '–';
  if (target_name !== undefined) return <span title={target}>{toVisible(target_name)}</span>;
  if (!serverOperations.test(operation) || operation === 'deleteMcpServer') return <Id>{target}</Id>;
  const to = `/servers/${encodeURIComponent(target)}`;
  return (
    <TextLink to={to} underline={isInline ? 'always' : 'hover'}>
      {toVisible(target)}
    </TextLink>
  );
}
