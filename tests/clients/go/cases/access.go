package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var (
	now  = time.Now().UTC().Truncate(time.Second)
	soon = now.Add(time.Hour)
)

// byToken returns a client of a table that has nothing but a token.
func byToken(name, token string) *aztables.Client {
	return must(aztables.NewServiceClientWithNoCredential(endpoint+"/?"+token, options)).NewClient(name)
}

func tableToken(name string, values aztables.SASSignatureValues) string {
	values.TableName = name
	return must(values.Sign(credential))
}

func accountToken(resourceTypes, permissions string) string {
	values := aztables.AccountSASSignatureValues{
		Protocol: aztables.SASProtocolHTTPSandHTTP, ExpiryTime: soon, Permissions: permissions,
		Services: "t", ResourceTypes: resourceTypes,
	}
	token := must(values.Sign(credential))
	return token.Encode()
}

func addAccess() {
	check("opens a table by the address that the client makes of it", func() {
		_, name := newTable()
		// the client puts no slash between the address of the service and the table
		table := must(aztables.NewServiceClientWithSharedKey(endpoint+"/", credential, options)).NewClient(name)
		insert(table, person("ada", london))
		address := must(table.GetTableSASURL(aztables.SASPermissions{Read: true, Update: true}, now.Add(-time.Hour), soon))
		limited := must(aztables.NewClientWithNoCredential(address, options))
		equal(get(limited, "se", "ada"), entity{"Age": 36.0, "City": "London"})
		_, err := update(limited, person("ada", entity{"Age": 37}), aztables.UpdateModeMerge, nil)
		ensure(err)
		_, err = limited.DeleteEntity(ctx, "se", "ada", nil)
		refused(err, 403, "AuthorizationPermissionMismatch")
	})
	check("allows what the letters of a token for a table say", func() {
		table, name := newTable()
		for letters, expected := range map[string]string{"r": "read", "a": "add", "u": "update", "d": "delete",
			"raud": "read add update delete"} {
			must(table.UpsertEntity(ctx, marshal(person("ada")), nil))
			limited := byToken(name, tableToken(name, aztables.SASSignatureValues{Permissions: letters, ExpiryTime: soon}))
			var allowed []string
			try := func(operation string, err error) {
				if err == nil {
					allowed = append(allowed, operation)
				} else {
					refused(err, 403, "AuthorizationPermissionMismatch")
				}
			}
			_, err := limited.NewListEntitiesPager(nil).NextPage(ctx)
			try("read", err)
			_, err = limited.AddEntity(ctx, marshal(person(newName())), nil)
			try("add", err)
			_, err = update(limited, person("ada"), aztables.UpdateModeReplace, nil)
			try("update", err)
			_, err = limited.DeleteEntity(ctx, "se", "ada", nil)
			try("delete", err)
			equal(strings.Join(allowed, " "), expected)
		}
	})
	check("submits a batch by a token", func() {
		_, name := newTable()
		limited := byToken(name, tableToken(name, aztables.SASSignatureValues{Permissions: "rau", ExpiryTime: soon}))
		ensure(submit(limited, action(aztables.TransactionTypeInsertReplace, person("a", london))))
		equal(stored(limited), "a:36,London")
	})
	check("refuses tokens that are over, not yet valid or forged", func() {
		_, name := newTable()
		for _, values := range []aztables.SASSignatureValues{
			{Permissions: "r", ExpiryTime: now.Add(-time.Hour)},
			{Permissions: "r", StartTime: soon, ExpiryTime: soon.Add(time.Hour)},
		} {
			_, err := byToken(name, tableToken(name, values)).NewListEntitiesPager(nil).NextPage(ctx)
			refused(err, 403, "AuthenticationFailed")
		}
		token := tableToken(name, aztables.SASSignatureValues{Permissions: "r", ExpiryTime: soon})
		forged := strings.Replace(token, "sp=r", "sp=raud", 1)
		_, err := byToken(name, forged).NewListEntitiesPager(nil).NextPage(ctx)
		refused(err, 403, "AuthenticationFailed")
	})
	checkStorage("keeps to the key range of a token", "Azure Cosmos DB refuses tokens with a range", func() {
		table, name := newTable()
		for _, partitionKey := range []string{"a", "b", "c"} {
			for _, rowKey := range []string{"1", "2"} {
				insert(table, entity{"PartitionKey": partitionKey, "RowKey": rowKey})
			}
		}
		for _, one := range []struct{ startPartition, startRow, endPartition, endRow, inside string }{
			{"b", "", "", "", "b1 b2 c1 c2"},
			{"", "", "b", "", "a1 a2 b1 b2"},
			{"a", "2", "", "", "a2 b1 b2 c1 c2"},
			{"a", "2", "b", "1", "a2 b1"},
		} {
			token := tableToken(name, aztables.SASSignatureValues{
				Permissions: "rau", ExpiryTime: soon, StartPartitionKey: one.startPartition, StartRowKey: one.startRow,
				EndPartitionKey: one.endPartition, EndRowKey: one.endRow,
			})
			// the client signs the range and leaves it out of the token
			for parameter, text := range map[string]string{
				"spk": one.startPartition, "srk": one.startRow, "epk": one.endPartition, "erk": one.endRow,
			} {
				if text != "" {
					token += "&" + parameter + "=" + url.QueryEscape(text)
				}
			}
			limited := byToken(name, token)
			found, _ := list(limited, nil)
			var keys []string
			for _, value := range found {
				keys = append(keys, fmt.Sprint(value["PartitionKey"], value["RowKey"]))
			}
			equal(strings.Join(keys, " "), one.inside)
			_, err := limited.UpsertEntity(ctx, marshal(entity{"PartitionKey": "z", "RowKey": "1"}), nil)
			if one.endPartition != "" {
				refused(err, 403, "AuthorizationFailure")
				_, err = limited.GetEntity(ctx, "z", "1", nil)
				refused(err, 404, "ResourceNotFound")
			} else {
				ensure(err)
				must(table.DeleteEntity(ctx, "z", "1", nil))
			}
		}
	})
	checkStorage("keeps stored access policies", "Azure Cosmos DB has no access policies", func() {
		table, _ := newTable()
		start, expiry := now.Add(-time.Hour), soon
		policies := []*aztables.SignedIdentifier{
			{ID: ptrTo("all"), AccessPolicy: &aztables.AccessPolicy{Start: &start, Expiry: &expiry, Permission: ptrTo("raud")}},
			{ID: ptrTo("é<&>"), AccessPolicy: &aztables.AccessPolicy{Start: &start, Expiry: &expiry, Permission: ptrTo("r")}},
		}
		must(table.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: policies}))
		found := must(table.GetAccessPolicy(ctx, nil)).SignedIdentifiers
		equal(len(found), 2)
		for number, policy := range policies {
			equal(*found[number].ID, *policy.ID)
			equal(*found[number].AccessPolicy.Permission, *policy.AccessPolicy.Permission)
			equal(found[number].AccessPolicy.Start.UTC(), start)
			equal(found[number].AccessPolicy.Expiry.UTC(), expiry)
		}
		must(table.SetAccessPolicy(ctx, nil))
		equal(len(must(table.GetAccessPolicy(ctx, nil)).SignedIdentifiers), 0)
	})
	checkStorage("heeds the policy that a token names", "Azure Cosmos DB has no access policies", func() {
		table, name := newTable()
		insert(table, person("ada", london))
		limited := byToken(name, tableToken(name, aztables.SASSignatureValues{Identifier: "reader"}))
		_, err := limited.GetEntity(ctx, "se", "ada", nil)
		refused(err, 403, "AuthenticationFailed")
		policy := &aztables.AccessPolicy{Start: &now, Expiry: &soon, Permission: ptrTo("r")}
		must(table.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{
			TableACL: []*aztables.SignedIdentifier{{ID: ptrTo("reader"), AccessPolicy: policy}},
		}))
		equal(get(limited, "se", "ada")["City"], "London")
		_, err = limited.DeleteEntity(ctx, "se", "ada", nil)
		refused(err, 403, "AuthorizationPermissionMismatch")
		must(table.SetAccessPolicy(ctx, nil))
		_, err = limited.GetEntity(ctx, "se", "ada", nil)
		refused(err, 403, "AuthenticationFailed")
	})
	check("allows what a token for the account says", func() {
		table, name := newTable()
		insert(table, person("ada", london))
		equal(get(byToken(name, accountToken("o", "r")), "se", "ada")["City"], "London")
		_, err := byToken(name, accountToken("o", "r")).DeleteEntity(ctx, "se", "ada", nil)
		refused(err, 403, "AuthorizationPermissionMismatch")
		_, err = byToken(name, accountToken("sc", "rwdlau")).GetEntity(ctx, "se", "ada", nil)
		refused(err, 403, "AuthorizationResourceTypeMismatch")
		created := newName()
		must(byToken(created, accountToken("c", "w")).CreateTable(ctx, nil))
		_, err = byToken(created, accountToken("c", "w")).Delete(ctx, nil)
		refused(err, 403, "AuthorizationPermissionMismatch")
		must(byToken(created, accountToken("c", "d")).Delete(ctx, nil))
	})
	check("opens the service by the address that the client makes of it", func() {
		address := must(service.GetAccountSASURL(
			aztables.AccountSASResourceTypes{Service: true, Container: true, Object: true},
			aztables.AccountSASPermissions{Read: true, List: true}, now.Add(-time.Hour), soon,
		))
		limited := must(aztables.NewServiceClientWithNoCredential(address, options))
		_, err := limited.NewListTablesPager(nil).NextPage(ctx)
		// the client's address is good for https only, and the server speaks http here
		refused(err, 403, "AuthorizationProtocolMismatch")
	})
	check("refuses a wrong key", func() {
		wrong := must(aztables.NewSharedKeyCredential(account, "d3Jvbmc="))
		stranger := must(aztables.NewServiceClientWithSharedKey(endpoint, wrong, options))
		_, err := stranger.NewListTablesPager(nil).NextPage(ctx)
		refused(err, 403, "AuthenticationFailed")
	})
}
