import { List } from '@mantine/core';
import { useSession } from '../frame/session.ts';
import { Section } from '../ui/section.tsx';

/** How long data is kept. */
export function RetentionSection() {
  const { call_retention_days: days, audit_retention_days: auditDays } = useSession();
  return (
    <Section title="Retention" text="The operator of the service sets how long records are kept.">
      <List size="sm" spacing={4}>
        <List.Item>Calls: {days === 1 ? '1 day' : `${days} days`}, without arguments and bodies.</List.Item>
        <List.Item>
          Captured calls: a day at most and the newest 4,000, only while capture is on for a server.
        </List.Item>
        <List.Item>
          Audit, revoked and expired keys, ended logins: {auditDays === 1 ? '1 day' : `${auditDays} days`}.
        </List.Item>
        <List.Item>Invitations: 90 days.</List.Item>
        <List.Item>Versions of a server: the newest, as many as the quota says.</List.Item>
      </List>
    </Section>
  );
}
