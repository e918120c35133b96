// The id of a request in a text, such as the message of an SDK's exception: what is pasted is cut down to it, because the
// rest may hold values of entities, and would stand in addresses.
const ID = "([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![\\w-])";
const NAMED = new RegExp(`(?:Request ?Id|x-ms-request-id)\\W{1,5}${ID}`, "i");
const ANY = new RegExp(`(?<![\\w-])${ID}`, "i");

export function readRequestId(text) {
  return (NAMED.exec(text) ?? ANY.exec(text))?.[1] ?? "";
}

export function pastedRequestId({ clipboardData }) {
  return readRequestId(clipboardData?.getData("text/plain") ?? "");
}
