import { Checkbox, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Member } from '../answers.ts';
import { api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { Confirm } from '../ui/actions/confirm.tsx';
import { useAction } from '../ui/actions/use-action.ts';
import { visible } from '../ui/text/visible.ts';

type Props = { member: Member | undefined; onClose: () => void };
type Removal = { member: Member; revokes: boolean };

/** Asks before a member is removed, and whether to revoke the keys that they made. */
export function RemoveDialog({ member, onClose }: Props) {
  const [revokes, setRevokes] = useState(false);
  const close = () => {
    setRevokes(false);
    onClose();
  };
  const remove = useAction({
    run: ({ member: { id }, revokes: revoke_keys }: Removal) => api('removeMember', { id, revoke_keys }),
    done: ({ revoked_key_count: count }) =>
      count === 0 ? 'Removed the member' : `Removed the member and revoked ${keysText(count)}`,
    refresh: [queryKeys.members, queryKeys.keys],
    onDone: close,
  });
  return (
    <Confirm
      opened={member !== undefined}
      title={`Remove ${visible(member?.name ?? member?.email ?? '')}?`}
      action="Remove member"
      isPending={remove.isPending}
      error={remove.error}
      onClose={close}
      onConfirm={() => member && remove.mutate({ member, revokes })}
    >
      <Text size="sm">
        Their sessions in this workspace and the logins of their agents end at once. Servers that they made stay.
      </Text>
      {member && <MadeKeys member={member} revokes={revokes} onChange={setRevokes} />}
    </Confirm>
  );
}

/** The keys that would go on working, and a choice to revoke them. */
function MadeKeys(props: { member: Member; revokes: boolean; onChange: (revokes: boolean) => void }) {
  const { id } = props.member;
  const made = useQuery({
    queryKey: queryKeys.keysMadeBy(id),
    queryFn: ({ signal }) => api('listApiKeys', { made_by: id, limit: 200 }, { signal }),
  });
  const keys = made.data?.keys ?? [];
  if (keys.length === 0) return null;
  return (
    <Stack gap="xs">
      <Text size="sm">
        They made {keysText(keys.length)} that still {keys.length === 1 ? 'works' : 'work'}, and may have a copy:{' '}
        {keys.map(({ name }) => visible(name)).join(', ')}.
      </Text>
      <Checkbox
        label={`Revoke ${keys.length === 1 ? 'it' : 'them'} too`}
        description="Scripts and clients that use such a key are refused within two seconds."
        checked={props.revokes}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
    </Stack>
  );
}

export function keysText(count: number): string {
  return count === 1 ? 'one API key' : `${count} API keys`;
}
