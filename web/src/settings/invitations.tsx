import { Box, Button, Group, Select, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import type { Invitation, Role } from '../answers.ts';
import { api } from '../api.ts';
import { useIsOwner } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { isSame, refusalOf } from '../ui/actions/refusal.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { type Column, Rows } from '../ui/rows.tsx';
import { messageOf, sentence } from '../ui/states/problem-alert.tsx';
import { Time } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';
import { roleChoices } from './roles.ts';

type Invited = { email: string; role: Role };

/** Open invitations. */
export function Invitations({ invitations }: { invitations: readonly Invitation[] }) {
  const isOwner = useIsOwner();
  const withdraw = useAction({
    run: ({ email }: Invitation) => api('withdrawInvitation', { email }),
    done: (_, { email }) => `Withdrew the invitation of ${visible(email)}`,
    refresh: [queryKeys.members],
    toastFailure: true,
  });
  const columns: Column<Invitation>[] = [
    { label: 'Invited', cell: ({ email }) => visible(email) },
    { label: 'As', cell: ({ role }) => role },
    { label: 'When', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      label: 'Actions',
      quiet: true,
      end: true,
      cell: (invitation) =>
        isOwner ? (
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => withdraw.mutate(invitation)}
            aria-label={`Withdraw ${visible(invitation.email)}`}
          >
            Withdraw
          </Button>
        ) : null,
    },
  ];
  return (
    <Box style={{ borderTop: '1px solid var(--th-line)' }}>
      <Rows label="Invitations" columns={columns} rows={invitations} keyOf={({ email }) => email} />
    </Box>
  );
}

export function InviteForm() {
  const form = useForm<Invited>({ initialValues: { email: '', role: 'editor' } });
  const invite = useAction({
    run: (invited: Invited) => api('inviteMember', invited),
    done: ({ email }) => `Invited ${visible(email)}`,
    refresh: [queryKeys.members],
    onDone: (_, sent) => isSame(sent, form.getValues()) && form.reset(),
  });
  const { problems, failure } = refusalOf(invite, form.values);
  const error = problems[0] ? sentence(problems[0].message) : failure && messageOf(failure);
  return (
    <form
      onSubmit={form.onSubmit((values) => invite.mutate(values))}
      noValidate
      style={{ borderTop: '1px solid var(--th-line)' }}
    >
      <Group gap="sm" p="md" align="flex-start">
        <TextInput
          label="Invite by e-mail address"
          placeholder="name@example.com"
          type="email"
          flex="1 1 14rem"
          maw={360}
          {...form.getInputProps('email')}
          error={error}
          autoComplete="off"
        />
        <Group gap="sm" wrap="nowrap" align="flex-end">
          <Select label="Role" data={roleChoices} allowDeselect={false} w={120} {...form.getInputProps('role')} />
          <Button type="submit" variant="default" loading={invite.isPending}>
            Invite
          </Button>
        </Group>
      </Group>
      <Text size="xs" c="dimmed" px="md" pb="md">
        No mail is sent: tell them to sign in here with that address, and they join.
      </Text>
    </form>
  );
}
