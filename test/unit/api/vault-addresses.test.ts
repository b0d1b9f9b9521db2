/** Which servers a list of addresses admits, by name and by address, and the messages about others. */
import assert from "node:assert/strict";
import { VaultAddresses } from "../../../src/api/vault-addresses.ts";

const listing = (...entries: string[]) => new VaultAddresses(entries);
const isAdmitted = (addresses: VaultAddresses, url: string, ...resolved: string[]) =>
  (resolved.length === 0 ? addresses.refusal(new URL(url)) : addresses.refusalOf(new URL(url), resolved)) === undefined;

describe("vault.addresses", () => {
  it("admits nothing if it is empty, and names the entry that admits the server", () => {
    const refusal = listing().refusal(new URL("https://vault.vault.svc:8200"));
    assert.equal(refusal?.reason, "ForbiddenAddress");
    assert.match(
      refusal.message,
      /add it to vault\.addresses in the configuration of Inlay: - vault\.vault\.svc:8200$/,
    );
  });

  const lines: [url: string, line: string][] = [
    ["https://Vault.Example.com.", "vault.example.com:443"],
    ["http://127.0.0.1:8200", "http://127.0.0.1:8200"],
    ["https://[FD00::1]:8200", "[fd00::1]:8200"],
    ["http://vault", "http://vault:80"],
  ];
  for (const [url, line] of lines) {
    it(`admits ${url} with the entry that the message suggests`, () => {
      assert.ok(listing().refusal(new URL(url))?.message.endsWith(`: - ${line}`));
      assert.ok(isAdmitted(listing(line), url));
    });
  }

  const cases: [entry: string, admitted: string[], refused: string[]][] = [
    [
      "vault.vault.svc:8200",
      ["https://vault.vault.svc:8200", "https://VAULT.vault.svc.:8200"],
      [
        "http://vault.vault.svc:8200",
        "https://vault.vault.svc",
        "https://other.vault.svc:8200",
        "https://10.0.0.1:8200",
      ],
    ],
    ["vault.vault.svc", ["https://vault.vault.svc", "https://vault.vault.svc:8200"], ["http://vault.vault.svc"]],
    [
      "*.vault.svc:8200",
      ["https://vault-0.vault.svc:8200", "https://a.b.vault.svc:8200"],
      ["https://vault.svc:8200", "https://evilvault.svc:8200", "https://vault-0.vault.svc.evil.com:8200"],
    ],
    ["http://vault:8200", ["http://vault:8200"], ["https://vault:8200"]],
    ["https://vault:8200", ["https://vault:8200"], ["http://vault:8200"]],
    [
      "10.0.0.0/8:8200",
      ["https://10.1.2.3:8200", "https://[::ffff:10.1.2.3]:8200"],
      ["https://11.1.2.3:8200", "https://10.1.2.3", "https://[fd00::1]:8200"],
    ],
    ["10.1.2.3", ["https://10.1.2.3", "https://10.1.2.3:8200", "https://0x0a010203"], ["https://10.1.2.4"]],
    ["[fd00::/8]:8200", ["https://[fd12::1]:8200"], ["https://[fd12::1]", "https://[fe00::1]:8200"]],
    ["fd00::/8", ["https://[fd12::1]", "https://[fd12::1]:8200"], ["https://[fe00::1]"]],
    ["[fd00::1]", ["https://[fd00::1]:8200"], ["https://[fd00::2]:8200"]],
  ];
  for (const [entry, admitted, refused] of cases) {
    it(`with ${entry} admits exactly its addresses`, () => {
      for (const url of admitted) assert.ok(isAdmitted(listing(entry), url), url);
      for (const url of refused) assert.ok(!isAdmitted(listing(entry), url), url);
    });
  }

  it("decides about an unlisted name when all its addresses are known", () => {
    const addresses = listing("10.0.0.0/8:8200", "fd00::/8");
    const url = "https://vault.example.com:8200";
    assert.ok(isAdmitted(addresses, url));
    assert.ok(isAdmitted(addresses, url, "10.0.0.1", "fd00::1"));
    assert.ok(!isAdmitted(addresses, url, "10.0.0.1", "11.0.0.1"));
    assert.ok(!isAdmitted(addresses, "http://vault.example.com:8200"));
  });

  it("never admits a link-local address, not even by a listed name", () => {
    const addresses = listing("vault", "0.0.0.0/0", "::/0", "169.254.169.254", "http://169.254.169.254");
    const literals = ["169.254.169.254", "[fe80::1]", "[febf::1]", "[::ffff:169.254.1.1]", "[::ffff:a9fe:101]"];
    for (const each of [...literals, "[64:ff9b::169.254.169.254]", "0xa9fea9fe", "2852039166"]) {
      assert.ok(!isAdmitted(addresses, `https://${each}`), each);
    }
    for (const each of ["169.254.169.254", "fe80::1", "fe80::1%eth0", "::ffff:169.254.1.1"]) {
      assert.ok(!isAdmitted(addresses, "https://vault", "10.0.0.1", each), each);
    }
    assert.ok(isAdmitted(addresses, "https://vault", "10.0.0.1", "2001:db8::1"));
    const refusal = addresses.refusalOf(new URL("https://vault"), ["169.254.169.254"]);
    assert.match(refusal?.message ?? "", /^vault resolves to a link-local address/);
  });

  for (const entry of [
    "",
    "vault:",
    "vault:0",
    "vault:65536",
    "vault/path",
    "https://vault:8200/",
    "ftp://vault",
    "user@vault",
    "*",
    "*.",
    "va*lt",
    "a.*.b",
    "10.0.0.0/33",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.256",
    "[fd00::/129]",
    "[vault]:8200",
    "[fd00::1",
    "-vault",
    "va ult",
  ]) {
    it(`refuses the entry ${JSON.stringify(entry)}, with its position`, () => {
      assert.throws(
        () => listing("vault", entry),
        /^Error: vault\.addresses\[1\]: ".*" (is not an address; write|has the)/,
      );
    });
  }
});
