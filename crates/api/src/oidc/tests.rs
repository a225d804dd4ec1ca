use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};

use super::*;

const NOW: u64 = 1_800_000_000;

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

struct Issuer {
    ed: Ed25519KeyPair,
    ec: EcdsaKeyPair,
}

impl Issuer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let ed = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let ec = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self {
            ed: Ed25519KeyPair::from_pkcs8(ed.as_ref()).unwrap(),
            ec: EcdsaKeyPair::from_pkcs8(algorithm, ec.as_ref(), &random).unwrap(),
        }
    }

    fn jwks(&self) -> String {
        let point = self.ec.public_key().as_ref();
        format!(
            r#"{{"keys":[{{"kty":"oct","k":"AAAA"}},{{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"{}"}},{{"kty":"EC","crv":"P-256","kid":"ec","alg":"ES256","use":"sig","x":"{}","y":"{}"}}]}}"#,
            encode(self.ed.public_key()),
            encode(&point[1..33]),
            encode(&point[33..])
        )
    }

    fn sign(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = match header.contains("ES256") {
            true => {
                let random = SystemRandom::new();
                self.ec
                    .sign(&random, signed.as_bytes())
                    .unwrap()
                    .as_ref()
                    .to_vec()
            }
            false => self.ed.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        format!("{signed}.{}", encode(signature))
    }

    fn door(&self) -> Oidc {
        let settings = OidcSettings {
            issuer: "https://issuer.example".to_owned(),
            audience: "countersign".to_owned(),
            role_claim: "role".to_owned(),
            tenant_claim: "tenant".to_owned(),
        };
        Oidc::new(settings, self.jwks().as_bytes()).unwrap()
    }
}

const ED: &str = r#"{"alg":"EdDSA","kid":"ed"}"#;
const CLAIMS: &str = r#"{"iss":"https://issuer.example","aud":["x","countersign"],"sub":"dana","exp":1800000100,"role":"approver","tenant":"acme"}"#;

fn ask(door: &Oidc, token: &str) -> Result<Caller, OidcError> {
    door.caller(token, NOW * 1000)
}

#[test]
fn tokens_of_the_issuer_are_taken() {
    let issuer = Issuer::new();
    let door = issuer.door();
    for header in [
        ED,
        r#"{"alg":"EdDSA"}"#,
        r#"{"alg":"ES256","kid":"ec","typ":"JWT"}"#,
    ] {
        let caller = ask(&door, &issuer.sign(header, CLAIMS)).unwrap();
        assert_eq!(
            (caller.name.as_str(), caller.role),
            ("dana", Role::Approver)
        );
        assert_eq!(caller.tenant.unwrap().as_str(), "acme");
    }
}

#[test]
fn tokens_that_could_be_anybodys_are_not() {
    let issuer = Issuer::new();
    let door = issuer.door();
    let check = |header: &str, error: OidcError| {
        assert_eq!(
            ask(&door, &issuer.sign(header, CLAIMS)).unwrap_err(),
            error,
            "{header}"
        );
    };
    check(r#"{"alg":"none"}"#, OidcError::Algorithm);
    check(r#"{"alg":"HS256"}"#, OidcError::Algorithm);
    check(r#"{"kid":"ed"}"#, OidcError::Algorithm);
    check(r#"{"alg":"RS256"}"#, OidcError::NoKey);
    check(r#"{"alg":"EdDSA","kid":"other"}"#, OidcError::NoKey);
    check(r#"{"alg":"EdDSA","kid":"ec"}"#, OidcError::NoKey);
    check(
        r#"{"alg":"EdDSA","crit":["b64"],"b64":false}"#,
        OidcError::Form,
    );
    check(r#"{"alg":"EdDSA","alg":"none"}"#, OidcError::Form);
    let good = issuer.sign(ED, CLAIMS);
    let (signed, _) = good.rsplit_once('.').unwrap();
    assert_eq!(
        ask(&door, &format!("{signed}.")).unwrap_err(),
        OidcError::Signature
    );
    assert_eq!(ask(&door, signed).unwrap_err(), OidcError::Form);
    assert_eq!(
        ask(&door, &format!("{good}.x")).unwrap_err(),
        OidcError::Form
    );
    let stranger = Issuer::new().sign(ED, CLAIMS);
    assert_eq!(ask(&door, &stranger).unwrap_err(), OidcError::Signature);
    let operator = CLAIMS.replace("approver", "operator");
    let (_, signature) = good.rsplit_once('.').unwrap();
    let changed = format!("{}.{}.{signature}", encode(ED), encode(operator));
    assert_eq!(ask(&door, &changed).unwrap_err(), OidcError::Signature);
}

#[test]
fn every_claim_counts() {
    let issuer = Issuer::new();
    let door = issuer.door();
    for (from, to, claim) in [
        ("https://issuer.example", "https://issuer.example/", "iss"),
        ("\"countersign\"", "\"other\"", "aud"),
        ("1800000100", "1799999940", "exp"),
        ("\"exp\":1800000100,", "", "exp"),
        ("\"exp\"", "\"nbf\":1800000061,\"exp\"", "nbf"),
        ("\"sub\":\"dana\",", "", "sub"),
        ("approver", "king", "role"),
        (",\"tenant\":\"acme\"", "", "tenant"),
        ("\"acme\"", "7", "tenant"),
        ("\"acme\"", "\"\"", "tenant"),
    ] {
        let token = issuer.sign(ED, &CLAIMS.replacen(from, to, 1));
        let expect = OidcError::Claim(claim.to_owned());
        assert_eq!(ask(&door, &token).unwrap_err(), expect, "{from} → {to}");
    }
}

#[test]
fn keys_that_cannot_be_used_do_not_take_the_place_of_others() {
    let (old, new) = (Issuer::new(), Issuer::new());
    let door = old.door();
    assert_eq!(door.replace_keys(b"{\"keys\":[]}"), Err(OidcError::Keys));
    assert!(ask(&door, &old.sign(ED, CLAIMS)).is_ok());
    assert_eq!(door.replace_keys(new.jwks().as_bytes()), Ok(()));
    assert!(ask(&door, &old.sign(ED, CLAIMS)).is_err());
    assert!(ask(&door, &new.sign(ED, CLAIMS)).is_ok());
}
