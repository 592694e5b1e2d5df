import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck, IconCircleX } from '@tabler/icons-react';
import { api } from '../../api.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Section } from '../../ui/section.tsx';
import { ProblemAlert } from '../../ui/states/problem-alert.tsx';
import { toVisible } from '../../ui/text/visible.ts';

const statusIcons = {
  ok: { Icon: IconCircleCheck, color: 'var(--th-good)', label: 'Passed' },
  warning: { Icon: IconAlertTriangle, color: 'var(--th-warn)', label: 'Warning' },
  problem: { Icon: IconCircleX, color: 'var(--th-bad)', label: 'Problem' },
};

/** Sends a client's first requests to the server or one of its views, and shows which would fail and why. */
export function ConnectionCheckSection({ slug, view }: { slug: string; view: string | undefined }) {
  const check = useAction({ run: () => api('checkConnection', { slug, view }) });
  return (
    <Section
      title="Connection check"
      text={`Sends a client's first requests to the ${view === undefined ? 'server' : `view ${toVisible(view)}`} and shows what would fail.`}
      actions={
        <Button variant="default" onClick={() => check.mutate()} loading={check.isPending}>
          Check connection
        </Button>
      }
    >
      {check.error && <ProblemAlert error={check.error} />}
      <Stack gap="sm" aria-live="polite">
        {check.data?.checks.map(({ id, status, title, detail, clients }) => {
          const { Icon, color, label } = statusIcons[status];
          return (
            <Group key={id} gap="sm" wrap="nowrap" align="flex-start">
              <Icon size={20} color={color} aria-label={label} role="img" style={{ flex: 'none' }} />
              <div>
                <Text size="sm" fw={600}>
                  {toVisible(title)}
                </Text>
                <Text size="sm" c="dimmed">
                  {toVisible(detail)}
                </Text>
                {status !== 'ok' && (
                  <Group gap={4} mt={2}>
                    {clients.map((client) => (
                      <Badge key={client} color="gray">
                        {toVisible(client)}
                      </Badge>
                    ))}
                  </Group>
                )}
              </div>
            </Group>
          );
        })}
      </Stack>
    </Section>
  );
}
