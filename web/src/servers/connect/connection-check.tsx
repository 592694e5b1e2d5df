import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck, IconCircleX } from '@tabler/icons-react';
import { ApiProblem, api } from '../../api.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Section } from '../../ui/section.tsx';
import { ProblemAlert } from '../../ui/states/problem-alert.tsx';
import { visible } from '../../ui/text/visible.ts';

/** Sends the first requests of a client and shows which would fail, and why. */
export function ConnectionCheckSection({ slug, isOfView }: { slug: string; isOfView: boolean }) {
  const check = useAction({
    run: () => api('checkConnection', { slug }),
  });
  const isMissing = check.error instanceof ApiProblem && check.error.status === 404;
  return (
    <Section
      title="Connection check"
      text={`Plays the first requests of a client against the address${isOfView ? ' of the whole server' : ''} and says what would fail.`}
      actions={
        <Button variant="default" size="xs" onClick={() => check.mutate()} loading={check.isPending}>
          Check the connection
        </Button>
      }
    >
      {check.error && !isMissing && <ProblemAlert error={check.error} />}
      {isMissing && <Text size="sm">This version of the service cannot check connections yet.</Text>}
      <Stack gap="sm" aria-live="polite">
        {check.data?.checks.map((entry) => (
          <Group key={entry.id} gap="sm" wrap="nowrap" align="flex-start">
            <Mark status={entry.status} />
            <div>
              <Text size="sm" fw={600}>
                {visible(entry.title)}
              </Text>
              <Text size="sm" c="dimmed">
                {visible(entry.detail)}
              </Text>
              {entry.status !== 'ok' && (
                <Group gap={4} mt={2}>
                  {entry.clients.map((client) => (
                    <Badge key={client} color="gray">
                      {visible(client)}
                    </Badge>
                  ))}
                </Group>
              )}
            </div>
          </Group>
        ))}
      </Stack>
    </Section>
  );
}

const marks = {
  ok: { Icon: IconCircleCheck, color: 'var(--th-good)', label: 'Passed' },
  warning: { Icon: IconAlertTriangle, color: 'var(--th-warn)', label: 'Warning' },
  problem: { Icon: IconCircleX, color: 'var(--th-bad)', label: 'Problem' },
};

function Mark({ status }: { status: keyof typeof marks }) {
  const { Icon, color, label } = marks[status];
  return <Icon size={20} color={color} aria-label={label} role="img" style={{ flex: 'none' }} />;
}
